"""A look at a SuperLink from outside: reach it, verify its certificate, read its clock."""

import http.client
import socket
import ssl
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path

from cryptography import x509

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.privacy.addresses import check_server_name

_SECONDS = 10.0
_WITHIN = 20.0
_BYTES = 2**16  # of an answer that is read; a SuperLink's are shorter


@dataclass(frozen=True)
class Answer:
    """What the SuperLink answered.

    Attributes
    ----------
    certificate
        That it showed, verified against the authority and the name.
    health
        HTTP status of GET /health.
    clock_off
        Seconds by which its clock is ahead of ours; None when it did not say.
    clock_doubt
        How far that may be off, from the time on the way and the header's whole seconds.
    control
        Whether its Control API is open to us as well.
    """

    certificate: x509.Certificate
    health: int
    clock_off: float | None
    clock_doubt: float
    control: bool


def probe(
    host: str, port: int, authority: Path, seconds: float = _SECONDS, within: float = _WITHIN
) -> Answer:
    """Ask a SuperLink over TLS; every way to fail is one sentence.

    Parameters
    ----------
    host, port : where organisations reach it.
    authority : certificate of the federation's authority.
    seconds : to wait at most for a sign of life.
    within : seconds for the whole exchange, however slowly the answers drip in.
    """
    _check_address(host, port)
    answered: Future[Answer] = Future()

    def ask() -> None:
        try:
            answered.set_result(_ask(host, port, authority, seconds))
        except BaseException as error:
            answered.set_exception(error)

    # No timeout of a socket or of the name service covers all of an exchange; a thread's end does.
    threading.Thread(target=ask, daemon=True).start()
    try:
        return answered.result(within)
    except TimeoutError:
        raise RunError(
            f"{host}:{port} did not finish its answers within {within:g} s: ask the coordinator to "
            "look at the SuperLink, the proxy and the network"
        ) from None


def _check_address(host: str, port: int) -> None:
    try:
        check_server_name(host)
    except ConfigError:
        raise RunError(
            f"{host!r} is neither a host name nor an address: get the federation file from the "
            "coordinator again"
        ) from None
    if not 1 <= port <= 65535:
        raise RunError(
            f"port {port} is not from 1 to 65535: get the federation file from the coordinator "
            "again"
        )


def _ask(host: str, port: int, authority: Path, seconds: float) -> Answer:
    context = ssl.create_default_context(cafile=str(authority))
    connection = http.client.HTTPSConnection(host, port, timeout=seconds, context=context)
    try:
        _connect(connection, host, port)
        shown = connection.sock.getpeercert(binary_form=True) or b""
        before = time.time()
        connection.request("GET", "/health")
        reply = connection.getresponse()
        reply.read(_BYTES)
        after = time.time()
        off, doubt = _clock(reply.headers.get("Date"), before, after)
        return Answer(
            certificate=x509.load_der_x509_certificate(shown),
            health=reply.status,
            clock_off=off,
            clock_doubt=doubt,
            control=_is_open(connection, "/v1/control/list-nodes"),
        )
    except (OSError, http.client.HTTPException) as error:
        raise RunError(
            f"{host}:{port} does not answer like a SuperLink ({type(error).__name__}): ask the "
            "coordinator whether it runs"
        ) from None
    finally:
        connection.close()


def _connect(connection: http.client.HTTPSConnection, host: str, port: int) -> None:
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        raise RunError(
            f"the certificate of {host}:{port} is not good ({error.verify_message}): compare "
            "ca.crt, the clock and the name with the coordinator"
        ) from None
    except ssl.SSLError:
        raise RunError(
            f"{host}:{port} does not speak TLS: check the port, and that the SuperLink was not "
            "started with --insecure"
        ) from None
    except socket.gaierror:
        raise RunError(f"the name {host} is unknown here: check it and the DNS") from None
    except OSError as error:
        raise RunError(
            f"{host}:{port} cannot be reached ({error.strerror or 'no answer'}): start the "
            "SuperLink, or open the way to it in the firewall"
        ) from None


def _clock(date: str | None, before: float, after: float) -> tuple[float | None, float]:
    """Seconds that the other clock is ahead, and how far that may be wrong.

    The header has whole seconds, rounded down, and was written at some time between the two.
    """
    doubt = 0.5 + (after - before) / 2
    try:
        told = parsedate_to_datetime(date or "")
    except ValueError:
        return None, doubt
    told = told if told.tzinfo else told.replace(tzinfo=UTC)
    return told.timestamp() + 0.5 - (before + after) / 2, doubt


def _is_open(connection: http.client.HTTPSConnection, path: str) -> bool:
    """Whether anything but a refusal comes back for a path that only the coordinator needs."""
    connection.request("POST", path, body=b"", headers={"Content-Type": "application/protobuf"})
    reply = connection.getresponse()
    reply.read(_BYTES)
    return reply.status not in (401, 403, 404)
