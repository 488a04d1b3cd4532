import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from fedlap_app.deploy.certificates import make_authority, make_server, read_pair
from fedlap_app.deploy.demo import make_demo
from fedlap_app.deploy.expiry import expired
from tests.deploy.conftest import SMALL


@pytest.fixture
def certificate(tmp_path):
    authority = make_authority("test")
    make_server(authority, "test", ["localhost"], 10).save(tmp_path / "crt", tmp_path / "key")
    return tmp_path / "crt"


def test_a_certificate_is_good_until_its_end(certificate):
    now = datetime.now(UTC)
    assert expired(certificate, "renew it") == ""
    assert expired(certificate, "renew it", now + timedelta(days=9)) == ""
    sentence = expired(certificate, "renew it", now + timedelta(days=11))
    assert sentence.startswith(f"the certificate {certificate} expired on ")
    assert sentence.endswith("UTC: renew it")


def test_the_scripts_get_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "crt").write_text("no certificate")
    command = [sys.executable, "-m", "fedlap_app.deploy.expiry", str(tmp_path / "crt"), "renew"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_an_expired_certificate_stops_the_start_scripts_with_one_sentence(tmp_path):
    made = make_demo(tmp_path / "demo", SMALL, port=18100, node_port=19194)
    ca, superlink = made.out / "coordinator" / "ca", made.superlink
    authority = read_pair(ca / "ca.crt", ca / "ca.key")
    files = superlink / "server.crt", superlink / "server.key"
    make_server(authority, "demo", ["127.0.0.1"], days=-1).save(*files)
    for words in (["start.sh", "superlink"], ["flwr.sh", "run", ".", "fedlap"]):
        command = ["sh", str(superlink / words[0]), *words[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 2
        assert done.stderr.startswith(f"the certificate {files[0]} expired on ")
        assert "run 'fedlap keys issue --renew' at the coordinator" in done.stderr
        assert len(done.stderr.splitlines()) == 1
