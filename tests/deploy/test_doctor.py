import http.server
import re
import shutil
import ssl
import subprocess
import threading
import time
from email.utils import formatdate

import pytest

from fedlap_app.deploy.certificates import make_server, read_pair
from fedlap_app.deploy.demo import make_demo
from fedlap_app.deploy.doctor import examine
from fedlap_app.errors import ConfigError
from fedlap_app.settings import Settings
from tests.deploy.conftest import SMALL


class Link:
    """A stand-in for a SuperLink: TLS, /health and a clock that can be wrong."""

    def __init__(self, certificate, key):
        link = self
        self.ahead, self.health, self.control = 0.0, 200, 404

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def date_time_string(self, timestamp=None):
                return formatdate(time.time() + link.ahead, usegmt=True)

            def answer(self, status):
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self):
                self.answer(link.health if self.path == "/health" else 404)

            def do_POST(self):
                self.answer(link.control)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def demo(tmp_path):
    return make_demo(tmp_path / "demo", SMALL, servers=("127.0.0.1",), port=1)


def serve(demo, certificate, key):
    """Start the stand-in and write its port into every federation file."""
    link = Link(certificate, key)
    for file in demo.out.rglob("federation.toml"):
        file.write_text(file.read_text().replace("port = 1\n", f"port = {link.port}\n"))
    return link


@pytest.fixture
def link(demo):
    link = serve(demo, demo.superlink / "server.crt", demo.superlink / "server.key")
    yield link
    link.server.shutdown()
    link.server.server_close()


def look(demo, name="bank-00", settings=Settings):
    folder = demo.organisation(name)
    return examine(folder / "federation.toml", settings, folder / "data")


def complaints(found):
    return [each.line for each in found if each.state != "ok"]


def test_all_is_well(demo, link):
    found = look(demo)
    assert complaints(found) == []
    assert {each.what for each in found} == {
        "federation", "version", "packages", "authority", "SuperLink", "certificate", "names",
        "clock", "Control API", "settings",
        "training", "schema", "data", "labels", "identity", "keys",
        "disk",
    }  # fmt: skip


def test_at_the_coordinator(demo, link):
    link.control = 200
    (line,) = complaints(examine(demo.out / "coordinator" / "federation.toml", Settings))
    assert line.startswith("warn  Control API: open to this machine")


@pytest.mark.parametrize(
    ("ahead", "good"), [(0, True), (3.5, True), (-3.5, True), (9, False), (-9, False)]
)
def test_clocks_within_five_seconds(demo, link, ahead, good):
    link.ahead = ahead
    lines = complaints(look(demo))
    assert (lines == []) is good
    if not good:
        assert lines[0].startswith("fail  clock")
        assert ("behind" if ahead > 0 else "ahead of") in lines[0]


def test_nobody_listens(demo):
    (line,) = complaints(look(demo))
    assert "127.0.0.1:1 cannot be reached (Connection refused)" in line


def test_a_sick_superlink(demo, link):
    link.health = 503
    (line,) = complaints(look(demo))
    assert "answers 503 to GET /health" in line


@pytest.mark.parametrize(
    ("names", "days", "reason"),
    [(("127.0.0.1",), -1, "expired"), (("other.example.org",), 30, "mismatch")],
)
def test_a_certificate_that_is_not_good(demo, names, days, reason):
    ca = demo.out / "coordinator" / "ca"
    authority = read_pair(ca / "ca.crt", ca / "ca.key")
    files = demo.superlink / "x.crt", demo.superlink / "x.key"
    make_server(authority, "demo", names, days).save(*files)
    link = serve(demo, *files)
    (line,) = complaints(look(demo))
    assert line.startswith(f"fail  SuperLink: the certificate of 127.0.0.1:{link.port} is not good")
    assert reason in line


def test_the_authority_must_be_that_of_the_federation(demo, link, tmp_path):
    other = make_demo(tmp_path / "other", SMALL)
    folder = demo.organisation("bank-00")
    shutil.copy(other.superlink / "ca.crt", folder / "ca.crt")
    assert any(
        "is not the authority of the federation file" in line for line in complaints(look(demo))
    )
    (folder / "ca.crt").unlink()
    assert any("there is no" in line and "ca.crt" in line for line in complaints(look(demo)))


def test_other_versions(demo, link):
    file = demo.organisation("bank-00") / "federation.toml"
    file.write_text(file.read_text().replace('version = "', 'version = "9.'))
    lines = complaints(look(demo))
    assert lines[0].startswith("fail  version: FedLap")
    assert "install 9." in lines[0]


def test_settings_that_cannot_work_or_weaken(demo, link):
    (line,) = complaints(look(demo, settings=lambda: Settings(clients=5)))
    assert "clients = 5 but the federation has 3 members: set clients = 3" in line
    (line,) = complaints(look(demo, settings=lambda: Settings(method="central")))
    assert "needs all data in one place" in line
    (line,) = complaints(look(demo, settings=lambda: Settings(trust_on_first_use=True)))
    assert line.startswith("warn  settings: trust-on-first-use")
    (line,) = complaints(look(demo, settings=lambda: Settings(backend="plain")))
    assert line.startswith("warn  settings: backend = 'plain'")
    lines = complaints(look(demo, settings=lambda: Settings(training_backend="plain")))
    assert "training-backend = 'plain' shows the server every update" in lines[0]
    assert "[policy] does not allow training-backend = 'plain'" in lines[1]
    with (demo.organisation("bank-00") / "data" / "org.toml").open("a") as file:
        file.write("\n[policy]\nleast-members = 4\n")
    (line,) = complaints(look(demo))
    assert line.startswith("fail  policy: the federation has 3 members and [policy] asks for 4")
    assert complaints(look(demo, settings=lambda: Settings(method="local"))) == []

    def broken():
        raise ConfigError("rounds = -1 is out of range")

    (line,) = complaints(look(demo, settings=broken))
    assert line == "fail  settings: rounds = -1 is out of range"


def test_another_schema_another_identity_and_strangers(demo, link):
    data = demo.organisation("bank-00") / "data"
    org = data / "org.toml"
    org.write_text(org.read_text().replace('"ordinary"', '"usual"'))
    nodes = data / "nodes.csv"
    nodes.write_text(nodes.read_text().replace(",ordinary,", ",usual,"))
    edges = data / "edges.csv"
    edges.write_text(edges.read_text().replace(",bank-01", ",bank-99"))
    lines = complaints(look(demo))
    assert any(line.startswith("fail  schema") for line in lines)
    assert any("edges lead to bank-99" in line for line in lines)
    (data / "store" / "offline" / "identity").unlink()
    assert any("fail  identity: there is no" in line for line in complaints(look(demo)))


def test_pins_that_contradict_each_other(demo, link):
    org = demo.organisation("bank-00") / "data" / "org.toml"
    org.write_text(org.read_text() + '\n[peers]\nbank-01 = "abcd"\n')
    (line,) = complaints(look(demo))
    assert "org.toml pins the fingerprint abcd for bank-01" in line


def test_a_full_disk(demo, link, monkeypatch):
    from collections import namedtuple

    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9 - 2**20, 2**20))
    (line,) = complaints(look(demo))
    assert line.startswith("fail  disk: 1 MB free")
    assert line.endswith("make room")


def test_data_of_another_organisation_and_a_lost_file(demo, link):
    folder = demo.organisation("bank-00")
    lines = complaints(
        examine(folder / "federation.toml", Settings, demo.organisation("bank-01") / "nowhere")
    )
    assert any(line.startswith("fail  data: There is no folder") for line in lines)
    (line,) = complaints(examine(folder / "nothing.toml", Settings))
    assert line.startswith("fail  federation: There is no nothing.toml")


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ('["a b"]', "neither a host name nor an address"),
        ('["x\\u0000y"]', "neither a host name nor an address"),
        (f'["{"a" * 70}.org"]', "neither a host name nor an address"),
    ],
)
def test_a_server_name_that_cannot_be_one(demo, names, reason):
    file = demo.organisation("bank-00") / "federation.toml"
    lines = [
        f"names = {names}" if line.startswith("names = ") else line
        for line in file.read_text().splitlines()
    ]
    file.write_text("\n".join(lines))
    found = complaints(look(demo))
    assert any(line.startswith("fail  SuperLink: ") and reason in line for line in found)


def test_a_federation_file_without_a_server(demo):
    file = demo.organisation("bank-00") / "federation.toml"
    file.write_text(re.sub(r"(?m)^names = .*$", "names = []", file.read_text()))
    (line,) = complaints(look(demo))
    assert line.startswith("fail  federation: federation.toml names no server")


def test_start_commands_that_would_run_delivered_code(demo, link):
    start = demo.organisation("bank-00") / "start.sh"
    ours = '"$FEDLAP_BIN/python" -I -m client_app.superexec'
    assert ours in start.read_text()
    start.write_text(start.read_text().replace(ours, "flower-superexec"))
    (line,) = complaints(look(demo))
    assert line.startswith("fail  start commands: ")
    assert "may run the code that comes with a run: run `fedlap keys request` again" in line


def test_a_running_superexec_of_flower(demo, link, tmp_path):
    program = tmp_path / "flower-superexec"
    program.write_text("#!/bin/sh\nread -r nothing\n")
    port = demo.organisation("bank-00") / "organisation.env"
    assert "FEDLAP_NODE_PORT='9094'" in port.read_text()
    words = ["/bin/sh", program, "--insecure", "--runtime-api-address", "127.0.0.1:9094"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as running:
        (line,) = complaints(look(demo))
        running.kill()
    assert line.startswith("fail  SuperExec: process ")
    assert complaints(look(demo)) == []


def test_an_organisation_without_start_commands(demo, link, tmp_path):
    for name in ("federation.toml", "ca.crt"):
        shutil.copy(demo.organisation("bank-00") / name, tmp_path)
    data = demo.organisation("bank-00") / "data"
    (line,) = complaints(examine(tmp_path / "federation.toml", Settings, data))
    assert line.startswith("warn  SuperExec: no start commands of `fedlap keys request`")


def test_other_code_than_the_coordinators_is_told_and_not_obeyed(demo, link):
    file = demo.organisation("bank-00") / "federation.toml"
    file.write_text(file.read_text().replace('code = "', 'code = "00'))
    lines = complaints(look(demo))
    assert {line[:4] for line in lines} == {"warn"}
    assert any("find out who changed it" in line for line in lines)
