import socket
import ssl
import stat
import threading
from datetime import UTC, datetime, timedelta

import pytest

from fedlap_app.deploy.certificates import (
    is_issued_by,
    make_authority,
    make_server,
    names_of,
    read_pair,
)
from fedlap_app.errors import ConfigError

NAMES = ("fedlap.example.org", "192.0.2.7", "2001:db8::7", "localhost", "127.0.0.1")


@pytest.fixture(scope="module")
def authority():
    return make_authority("banks")


def handshake(tmp_path, authority, server, hostname):
    """A TLS handshake of Python's own ssl over a socket pair, verified by the authority."""
    authority.save(tmp_path / "ca.crt", tmp_path / "ca.key")
    server.save(tmp_path / "server.crt", tmp_path / "server.key")
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    calling = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    calling.verify_flags |= ssl.VERIFY_X509_STRICT
    left, right = socket.socketpair()

    def serve():
        try:
            with listening.wrap_socket(left, server_side=True) as channel:
                channel.recv(1)
        except OSError:
            pass

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with calling.wrap_socket(right, server_hostname=hostname) as channel:
            return channel.send(b"x")
    finally:
        right.close()
        thread.join(10)


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_client_accepts_every_name(tmp_path, authority, name):
    server = make_server(authority, "banks", NAMES, 30)
    assert handshake(tmp_path, authority, server, name) == 1


def test_a_name_that_is_not_covered_is_refused(tmp_path, authority):
    server = make_server(authority, "banks", NAMES, 30)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        handshake(tmp_path, authority, server, "other.example.org")


def test_another_authority_and_an_expired_certificate_are_refused(tmp_path, authority):
    foreign = make_authority("banks")
    server = make_server(foreign, "banks", NAMES, 30)
    assert not is_issued_by(server.certificate, authority.certificate)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, authority, server, "localhost")
    expired = make_server(authority, "banks", NAMES, -1)
    assert is_issued_by(expired.certificate, authority.certificate)
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(tmp_path, authority, expired, "localhost")


def test_a_prolonged_authority_still_stands_for_its_certificates(tmp_path, authority):
    server = make_server(authority, "banks", NAMES, 30)
    prolonged = make_authority("banks", authority.key)
    assert handshake(tmp_path, prolonged, server, "localhost") == 1


def test_a_certificate_ends_when_asked_and_never_after_its_authority(authority):
    soon = make_server(authority, "banks", NAMES, 30).certificate
    assert abs(soon.not_valid_after_utc - datetime.now(UTC) - timedelta(days=30)) < timedelta(
        hours=1
    )
    late = make_server(authority, "banks", NAMES, 100_000).certificate
    assert late.not_valid_after_utc <= authority.certificate.not_valid_after_utc
    assert set(names_of(soon)) == set(NAMES)


def test_keys_are_private_and_must_belong_to_their_certificate(tmp_path, authority):
    files = tmp_path / "ca.crt", tmp_path / "ca.key"
    authority.save(*files)
    assert stat.S_IMODE(files[1].stat().st_mode) == 0o600
    assert read_pair(*files).certificate == authority.certificate
    make_authority("banks").save(tmp_path / "other.crt", files[1])
    with pytest.raises(ConfigError, match="does not belong to"):
        read_pair(*files)
