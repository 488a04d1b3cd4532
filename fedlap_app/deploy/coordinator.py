"""What the coordinator does: authority, certificate, federation file, a folder for each party."""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import flwr
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from fedlap_app.deploy.certificates import (
    SERVER_DAYS,
    certificate_fingerprint,
)
from fedlap_app.deploy.environment import write_environment
from fedlap_app.deploy.folders import write_organisation_folder, write_superlink_folder
from fedlap_app.deploy.members import join_members
from fedlap_app.deploy.paths import check_served_path
from fedlap_app.deploy.request import Request
from fedlap_app.deploy.signing import find_certificates
from fedlap_app.errors import ConfigError
from fedlap_app.flower.package import installed_code
from fedlap_app.graphs.checks import fault_of_name
from fedlap_app.privacy.addresses import (
    certificate_names,
    check_server_name,
    default_listen,
    host_and_port,
    is_loopback,
    read_listen,
)
from fedlap_app.privacy.federation import FILE, Federation, read_federation_file
from fedlap_app.store.files import write_private
from fedlap_app.version import VERSION

PORT = 8000


@dataclass(frozen=True)
class Wishes:
    """What the coordinator asks for; what is None stays as it was.

    Attributes
    ----------
    name
        Of the federation.
    servers
        Names and addresses of the SuperLink.
    port
        Port that organisations use.
    listen
        ADDRESS:PORT of the SuperLink itself (default: all addresses, the same port).
    days
        How long a new certificate of the SuperLink lasts.
    renew
        Make a new certificate although the old one is good.
    replace
        Accept other keys of a member.
    remove
        Members that leave.
    """

    name: str | None = None
    servers: tuple[str, ...] = ()
    port: int | None = None
    listen: str | None = None
    days: float = SERVER_DAYS
    renew: bool = False
    replace: bool = False
    remove: tuple[str, ...] = ()


def issue(out: Path, requests: Sequence[Request], wishes: Wishes) -> Federation:
    """Make or extend a federation in a folder of the coordinator."""
    check_served_path(out)
    before = find_federation(out)
    name, servers, port, listen = addresses(before, wishes)
    members = join_members(
        before.members if before else (), requests, accept=wishes.replace, remove=wishes.remove
    )
    superlink = out / "superlink"
    certificates = find_certificates(
        out, name, certificate_names(servers, listen[0]), wishes.days, renew=wishes.renew
    )
    certificates.save(out)
    if not (superlink / "superexec-secret").exists():
        write_private(superlink / "superexec-secret", os.urandom(32))
    write_environment(
        superlink / "coordinator.env",
        "Local to the coordinator; start.sh and flwr.sh read it.",
        {"FEDLAP_BIN": Path(sys.executable).parent},
    )
    federation = Federation(
        name=name,
        version=VERSION,
        flower=flwr.__version__,
        servers=servers,
        port=port,
        listen=listen,
        authority=certificate_fingerprint(certificates.authority),
        authority_expires=certificates.authority.not_valid_after_utc,
        certificate_expires=certificates.server.not_valid_after_utc,
        issued=datetime.now(UTC),
        members=members,
        code=installed_code(),
    )
    _write_folders(out, federation, certificates.authority, wishes.remove)
    return federation


def find_federation(out: Path) -> Federation | None:
    """The federation that a coordinator's folder holds, if any."""
    return read_federation_file(out / FILE) if (out / FILE).exists() else None


def warnings(before: Federation | None, after: Federation) -> list[str]:
    """What the coordinator must do or know after a change, one sentence each."""
    found = []
    host, port = after.listen
    if not is_loopback(host):
        found.append(
            f"the SuperLink listens at {host_and_port(host, port)}: whoever reaches that port can "
            "submit runs; let a proxy stand before it with --listen 127.0.0.1:8000 --port 8443"
        )
    now = {member.name: member.supernode_key for member in after.members}
    for member in before.members if before else ():
        if now.get(member.name) != member.supernode_key:
            found.append(
                f"the SuperLink may know the old SuperNode key of {member.name} still: run "
                f"unregister.sh {shlex.quote(member.name)} first, then register.sh"
            )
    return found


def addresses(
    before: Federation | None, wishes: Wishes
) -> tuple[str, tuple[str, ...], int, tuple[str, int]]:
    """Name, servers, port and own address: those asked for, else those of before."""
    name = wishes.name or (before.name if before else None)
    if not name:
        raise ConfigError("a new federation needs a name: add --name, for example --name banks")
    fault = fault_of_name(name) or ("has a backtick: leave it out" if "`" in name else "")
    if fault:
        raise ConfigError(f"--name {name!r} {fault}")
    if before and name != before.name:
        raise ConfigError(
            f"the folder holds the federation {before.name!r}, not {name!r}: name another --out"
        )
    servers = tuple(dict.fromkeys(check_server_name(each) for each in wishes.servers))
    servers = servers or (before.servers if before else ())
    if not servers:
        raise ConfigError(
            "a new federation needs the SuperLink's name or address: add --server, for example "
            "--server fedlap.example.org"
        )
    port = wishes.port or (before.port if before else PORT)
    return name, servers, port, _listen(before, wishes, servers, port)


def _listen(
    before: Federation | None, wishes: Wishes, servers: Sequence[str], port: int
) -> tuple[str, int]:
    """Where the SuperLink listens; its port follows the public one only if no proxy is between."""
    if wishes.listen is not None:
        listen = read_listen(wishes.listen)
    elif before is None:
        listen = default_listen(servers[0]), port
    else:
        listen = before.listen[0], port if before.listen[1] == before.port else before.listen[1]
    proxied = is_loopback(listen[0]) and not all(is_loopback(name) for name in servers)
    if proxied and listen[1] == port:
        raise ConfigError(
            f"the SuperLink listens at {host_and_port(*listen)}, so a proxy on the same machine "
            f"takes port {port} and the two collide: give --port and --listen other ports, for "
            "example --port 8443 --listen 127.0.0.1:8000"
        )
    return listen


def _write_folders(
    out: Path, federation: Federation, authority: x509.Certificate, remove: Sequence[str]
) -> None:
    text = authority.public_bytes(Encoding.PEM)
    write_superlink_folder(out / "superlink", federation, text)
    organisations = out / "organisations"
    for member in federation.members:
        write_organisation_folder(organisations / member.name, federation, text)
    for name in remove:
        if name not in federation.pins:
            shutil.rmtree(organisations / name, ignore_errors=True)
    (out / FILE).write_text(federation.to_toml(), encoding="utf-8")
