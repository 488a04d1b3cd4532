import socket
import ssl
import threading
import time

import pytest

from fedlap_app.deploy.certificates import make_authority, make_server
from fedlap_app.deploy.superlink_probe import probe
from fedlap_app.errors import RunError


@pytest.fixture
def files(tmp_path):
    """Certificate of an authority, and certificate and key of a server at 127.0.0.1."""
    authority = make_authority("demo")
    authority.save(tmp_path / "ca.crt", tmp_path / "ca.key")
    server = tmp_path / "server.crt", tmp_path / "server.key"
    make_server(authority, "demo", ("127.0.0.1",), 30).save(*server)
    return tmp_path / "ca.crt", *server


@pytest.mark.parametrize(
    "host", ["", "a b", "x\0y", "a" * 70, "a" * 70 + ".org", "https://a", "1.2"]
)
def test_a_name_that_cannot_be_one_is_one_sentence(files, host):
    with pytest.raises(RunError, match="neither a host name nor an address"):
        probe(host, 443, files[0])


@pytest.mark.parametrize("port", [-1, 0, 70_000])
def test_a_port_out_of_range_is_one_sentence(files, port):
    with pytest.raises(RunError, match=f"port {port} is not from 1 to 65535"):
        probe("127.0.0.1", port, files[0])


def test_a_server_that_drips_is_given_up(files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files[1:])
    over = threading.Event()

    def drip(listening):
        with context.wrap_socket(listening.accept()[0], server_side=True) as connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not over.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=drip, args=(listening,), daemon=True)
        server.start()
        started = time.monotonic()
        with pytest.raises(RunError, match="did not finish its answers within"):
            probe("127.0.0.1", listening.getsockname()[1], files[0], seconds=5, within=0.5)
        assert time.monotonic() - started < 3
        over.set()
        server.join(5)
