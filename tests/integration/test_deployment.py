"""Three banks over TLS with keys, all on the loopback, which is captured while they work."""

import http.client
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from fedlap_app.deploy.supernode_key import make_supernode_key
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
    "self-training": 0,
    "hidden": "16",
    "vectors": 10,
    "structure-width": 16,
    "step-timeout": 240.0,
}


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with patch("fedlap_app.deploy.demo.load_federation", lambda spec: _planted(spec)):
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
    authority = ["--root-certificates", str(federation.demo.superlink / "ca.crt")]
    make_supernode_key(tmp_path / "key", tmp_path / "pub", "stranger")
    (tmp_path / "secret").write_bytes(b"not the secret of the SuperLink!")
    supernode = [
        "flower-supernode", "--superlink", federation.address, *authority, "--isolation", "process",
        "--port", str(federation.free_port), "--auth-supernode-private-key", str(tmp_path / "key"),
    ]  # fmt: skip
    told = _try(supernode, tmp_path, lambda: False)
    assert "Failed to initialize the connection to the SuperLink" in told
    superexec = [
        "flower-superexec", "--runtime-api-address", federation.address, *authority,
        "--superexec-auth-secret-file", str(tmp_path / "secret"),
    ]  # fmt: skip
    _try(superexec, tmp_path, lambda: _refusals(federation))
    assert _refusals(federation)
    with pytest.raises((http.client.HTTPException, OSError)):
        _ask_without_tls(federation.address)
    assert federation.online() == len(federation.names)


def _refusals(federation) -> int:
    return federation.superlink.output.count('/v1/runtime/acquire-task HTTP/1.1" 401')


def _try(words: list[str], home: Path, is_refused) -> str:
    """What a program says that does not get in: until it ends, is refused, or a minute is over."""
    log = home / f"{words[0]}.log"
    with log.open("wb") as file:
        program = subprocess.Popen(
            [str(BIN / words[0]), *words[1:]],
            env={**environment(), "FLWR_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    deadline = time.monotonic() + 60
    while program.poll() is None and not is_refused() and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(1)
    program.kill()
    program.wait()
    return log.read_text(encoding="utf-8", errors="replace")


def _ask_without_tls(address: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=20)
    connection.request("GET", "/health")
    return connection.getresponse().status
