"""Three banks over TLS with keys, all on the loopback, which is captured while they work."""

import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from fedlap_app.graphs.federation import DataSpec, load_federation
from tests.integration.capture import LoopbackCapture, why_no_capture
from tests.integration.federation import Federation, environment
from tests.integration.markers import database_content, found_in, markers, planted
from tests.integration.network import Loopback
from tests.integration.replay import assert_same_scores, replay

pytestmark = [pytest.mark.integration, pytest.mark.ci]
BANKS = DataSpec(dataset="banks", clients=3, accounts=400)
BIN = Path(sys.executable).parent
CONFIG = {
    "rounds": 1,
    "local-epochs": 2,
    "hidden": "16",
    "vectors": 10,
    "structure-width": 16,
    "step-timeout": 240.0,
}


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with patch("fedlap_app.provision.demo.load_federation", lambda spec: _planted(spec)):
        made = Federation(tmp_path_factory.mktemp("banks"), BANKS, Loopback())
    with made:
        yield made


def _planted(spec):
    return planted(load_federation(spec))


@pytest.fixture(scope="module")
def finished(federation):
    """A whole run; the traffic between all parties, where it can be captured."""
    if why_no_capture():
        return federation.run(CONFIG), None
    with LoopbackCapture(federation.ports) as capture:
        outcome = federation.run(CONFIG)
        _say(b"a plaintext that the capture must show", min(federation.ports))
        time.sleep(1)
    return outcome, capture.content


def _say(text: bytes, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(text)


def test_supernodes_and_one_process_give_the_same_result(federation, finished, tmp_path):
    outcome, _ = finished
    assert_same_scores(outcome.summary, replay(federation, outcome, CONFIG, tmp_path))


def test_the_traffic_and_what_the_superlink_keeps_show_nothing(federation, finished):
    outcome, traffic = finished
    assert outcome.summary["clients"] == 3
    sought = {}
    for name in federation.names:
        for kind, marks in markers(
            federation.folder(name) / "data", federation.store(name)
        ).items():
            assert len(marks) > 2, kind
            sought.setdefault(kind, []).extend(marks)
    kept = {
        "database": database_content(federation.database),
        "log": federation.superlink.output.encode(),
        "run folder": b"".join(
            file.read_bytes() for file in outcome.folder.iterdir() if file.is_file()
        ),
    }
    assert b"Run folder: " in kept["database"]  # where Flower keeps what a ServerApp logs
    assert b"/v1/fleet/" in kept["log"]
    for where, content in kept.items():
        assert found_in(content, sought) == {}, where
    data = federation.folder(federation.names[0]) / "data"
    own = b"".join(file.read_bytes() for file in data.glob("*.csv"))
    assert {"node ids", "features", "labels"} <= found_in(own, sought).keys()
    if traffic is None:
        pytest.skip(f"only what the SuperLink keeps was searched: {why_no_capture()}")
    assert b"a plaintext that the capture must show" in traffic
    assert len(traffic) > 500_000
    assert found_in(traffic, sought) == {}
    for plain in (b"POST /v1/", b"flwr.proto", b"fedlap_app", b"query.offline", b"data-dir"):
        assert plain not in traffic, plain
    assert not any(name.encode() in traffic for name in federation.names)


def test_strangers_are_refused(federation, tmp_path):
    """An unknown SuperNode key, a SuperExec without the secret, a client without TLS."""
    name = federation.names[0]
    folder = federation.folder(name)
    key = tmp_path / "stranger"
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "384", "-N", "", "-f", str(key)], check=True
    )
    secret = tmp_path / "secret"
    secret.write_bytes(b"not the secret of the SuperLink!")
    port = str(federation.free_port)
    authority = ["--root-certificates", str(folder / "ca.crt")]
    supernode = [str(BIN / "flower-supernode"), "--superlink", federation.address, "--port", port]
    key_words = ["--auth-supernode-private-key", str(key)]
    superexec = [str(BIN / "flower-superexec"), "--runtime-api-address", federation.address]
    for words, sentence in (
        ([*supernode, *authority, *key_words], "public key"),
        ([*supernode, "--insecure", *key_words], ""),
        ([*superexec, *authority, "--superexec-auth-secret-file", str(secret)], ""),
    ):
        told = _ends(words, tmp_path)
        assert sentence in told.lower(), told
    assert federation.online() == set(federation.names)


def _ends(words: list[str], home) -> str:
    """What a program says that does not get in; it must end by itself or go on trying in vain."""
    done = subprocess.Popen(
        words,
        env={**environment(), "FLWR_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        return done.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        done.kill()
        return done.communicate()[0]
