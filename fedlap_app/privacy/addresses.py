"""Names and addresses of servers, as certificates and URLs want them."""

import ipaddress
import re
from collections.abc import Sequence

from fedlap_app.errors import ConfigError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9.]+")
_LISTEN = re.compile(r"(?:\[(?P<six>[^][]+)\]|(?P<four>[^][:]+)):(?P<port>[0-9]{1,5})")


def is_address(name: str) -> bool:
    """Whether the name is an IPv4 or IPv6 address, one that means the same on every machine."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return "%" not in name


def is_loopback(name: str) -> bool:
    """Whether only the own machine reaches a name or address."""
    return name in LOOPBACK or (is_address(name) and ipaddress.ip_address(name).is_loopback)


def check_server_name(name: str) -> str:
    """The name or address in its usual form; URLs, ports and wildcards are refused."""
    if is_address(name):
        address = ipaddress.ip_address(name)
        if address.is_unspecified or address.is_multicast:
            raise ConfigError(
                f"--server {name} is no address of one machine: give the one that organisations "
                "connect to, for example 192.0.2.7"
            )
        return str(address)
    plain = name.lower().rstrip(".")
    labels = plain.split(".")
    known = all(_LABEL.fullmatch(label) for label in labels) and len(plain) <= 253
    if not known or _NUMBER.fullmatch(plain):
        raise ConfigError(
            f"--server {name!r} is neither a host name nor an address: give for example "
            "fedlap.example.org or 192.0.2.7, without https:// and port"
        )
    return plain


def host_and_port(host: str, port: int) -> str:
    """Host and port as Flower takes them; an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def certificate_names(servers: Sequence[str], listen: str) -> tuple[str, ...]:
    """Every name under which the SuperLink is reached; its own machine asks at the loopback."""
    own = () if listen in EVERYWHERE else (listen,)
    return tuple(dict.fromkeys((*servers, *own, *LOOPBACK)))


def read_listen(text: str) -> tuple[str, int]:
    """Address and port out of ADDRESS:PORT."""
    found = _LISTEN.fullmatch(text)
    host = (found["six"] or found["four"]) if found else ""
    if not found or not is_address(host) or not 1 <= int(found["port"]) <= 65535:
        raise ConfigError(
            f"--listen {text!r} is not ADDRESS:PORT: give for example 127.0.0.1:8000 or [::1]:8000"
        )
    return str(ipaddress.ip_address(host)), int(found["port"])


def default_listen(server: str) -> str:
    """All addresses, of the kind that organisations use."""
    return "::" if ":" in server else "0.0.0.0"
