"""The proxy's configuration in a real nginx: what reaches the SuperLink and what does not."""

import http.client
import http.server
import shutil
import socket
import ssl
import subprocess
import threading
import time

import pytest

from fedlap_app.deploy.demo import make_demo
from fedlap_app.deploy.superlink_probe import probe
from tests.deploy.conftest import SMALL

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")

MAIN = """
daemon off; worker_processes 1; pid {0}/pid; error_log {0}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;
    uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
    include {1};
}}
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Recorder(http.server.BaseHTTPRequestHandler):
    """Stands for the SuperLink: answers 200 and notes what came through."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        size = int(self.headers.get("Content-Length") or 0)
        self.server.seen.append((self.path, len(self.rfile.read(size))))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - as the library names it

    def log_message(self, *words):
        return


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """A stand-in behind nginx; gives the public port, the authority and what came through."""
    folder = tmp_path_factory.mktemp("proxy")
    port, behind = free_port(), free_port()
    made = make_demo(folder / "demo", SMALL, port=port, listen=f"127.0.0.1:{behind}")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", behind), Recorder)
    server.seen = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.superlink / "server.crt", made.superlink / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    run = folder / "nginx"
    run.mkdir(mode=0o711)
    (run / "nginx.conf").write_text(MAIN.format(run, made.superlink / "nginx.conf"))
    process = subprocess.Popen([NGINX, "-c", str(run / "nginx.conf")], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    assert process.poll() is None, process.stderr.read().decode()
    yield port, made.superlink / "ca.crt", server.seen
    process.terminate()
    process.wait(timeout=30)
    server.shutdown()


def ask(proxied, method, path, body=b""):
    port, authority, _ = proxied
    context = ssl.create_default_context(cafile=str(authority))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    connection.putrequest(method, path, skip_host=False)
    connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/fleet/pull-messages"), ("POST", "/v1/fleet/a/b?c=d"), ("GET", "/health")],
)
def test_what_organisations_need_comes_through(proxied, method, path):
    assert ask(proxied, method, path, b"xyz") == 200
    assert proxied[2][-1] == (path, 3)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/control/list-runs",
        "/v1/control/start-run",
        "/v1/runtime/pull-task",
        "/v1/fleet",
        "/v1/fleet/../control/list-runs",
        "/v1/fleet/%2e%2e/control/list-runs",
        "/v1/fleet/..%2fcontrol/list-runs",
        "//v1/control/list-runs",
        "/V1/CONTROL/list-runs",
        "/health/../v1/control/list-runs",
        "/healthz",
        "/docs",
        "/openapi.json",
        "/",
    ],
)
def test_nothing_else_does(proxied, path):
    before = len(proxied[2])
    assert ask(proxied, "POST", path) in (403, 301)
    assert len(proxied[2]) == before


def test_a_message_of_40_mb_passes(proxied):
    assert ask(proxied, "POST", "/v1/fleet/push-object", bytes(40_000_000)) == 200
    assert proxied[2][-1] == ("/v1/fleet/push-object", 40_000_000)


def test_the_doctor_sees_a_closed_control_api(proxied):
    port, authority, _ = proxied
    answer = probe("127.0.0.1", port, authority)
    assert answer.health == 200
    assert not answer.control
