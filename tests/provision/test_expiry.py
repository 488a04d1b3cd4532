import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from fedlap_app.provision.certificates import make_authority, make_server
from fedlap_app.provision.expiry import expired


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
    command = [sys.executable, "-m", "fedlap_app.provision.expiry", str(tmp_path / "crt"), "renew"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
