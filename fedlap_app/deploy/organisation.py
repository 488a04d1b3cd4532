"""What happens at an organisation: its keys and its identity are made there and stay there."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from fedlap_app.deploy.certificates import CA_DAYS, make_authority, make_server
from fedlap_app.deploy.environment import read_environment, write_environment
from fedlap_app.deploy.folders import write_start_commands
from fedlap_app.deploy.paths import check_local_path
from fedlap_app.deploy.request import FILE, Request, sign_request
from fedlap_app.deploy.supernode_key import make_supernode_key, private_to_public
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.organisation import FILE as ORGANISATION
from fedlap_app.graphs.organisation import read_organisation
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.privacy.addresses import LOOPBACK
from fedlap_app.store import names, places
from fedlap_app.store.files import write_private
from fedlap_app.sums.job.secrets import stored_secrets

ENVIRONMENT = "organisation.env"
KEY, PUBLIC, SECRET = "keys/supernode", "keys/supernode.pub", "keys/superexec-secret"
RUNTIME = "keys/runtime"  # .key, .crt and -ca.crt of the SuperNode towards its own SuperExec
NODE_PORT = 9094
_PREVIOUS = ".previous"
_STATES = ("state", "state/supernode", "state/superexec")  # compose.yml mounts the latter two


@dataclass(frozen=True)
class Place:
    """Where an organisation keeps its things.

    Attributes
    ----------
    data
        Its organisation folder.
    out
        Folder of keys, request and start commands.
    store
        Folder of the client's store.
    port
        Port on the loopback at which SuperNode and SuperExec meet.
    """

    data: Path
    out: Path
    store: Path
    port: int = NODE_PORT

    def __post_init__(self) -> None:
        for path in (self.data, self.out, self.store):
            check_local_path(path)

    @property
    def identity(self) -> Path:
        """File of the FedLap identity."""
        return self.store / names.OFFLINE / names.IDENTITY

    @property
    def owner(self) -> Path:
        """File with the name of the organisation that the store belongs to."""
        return self.store / names.OFFLINE / "organisation"


def place_of(data: Path, out: Path, store: Path | None = None, port: int | None = None) -> Place:
    """Absolute paths of an organisation; what is not given is as an earlier request left it.

    Parameters
    ----------
    data : its organisation folder.
    out : folder of keys, request and start commands.
    store : the client's store (default: that of organisation.env, else `store` in `data`).
    port : for SuperNode and SuperExec (default: that of organisation.env, else 9094).
    """
    data, out = data.expanduser().absolute(), out.expanduser().absolute()
    before = read_environment(out / ENVIRONMENT)
    if store is None:
        store = _store_before(before, data) or places.own_store(data)
    if port is None:
        port = _port_before(before, out / ENVIRONMENT)
    return Place(data, out, store.expanduser().absolute(), port)


def _store_before(before: Mapping[str, str], data: Path) -> Path | None:
    """The store of an earlier request; one inside the organisation folder moves with it."""
    if not before.get("FEDLAP_ORG_STORE"):
        return None
    store, old = Path(before["FEDLAP_ORG_STORE"]), before.get("FEDLAP_ORG_DATA")
    return data / store.relative_to(old) if old and store.is_relative_to(old) else store


def _port_before(before: Mapping[str, str], path: Path) -> int:
    port = before.get("FEDLAP_NODE_PORT", str(NODE_PORT))
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65535):
        raise ConfigError(f"{path} has FEDLAP_NODE_PORT={port!r}: write a port, or give --port")
    return int(port)


def make_request(place: Place, name: str | None = None, *, renew: bool = False) -> Request:
    """Make the keys that are missing, and write the request and the start commands.

    Parameters
    ----------
    place : where things are kept.
    name : of the organisation; must be that of org.toml.
    renew : replace keys and identity; the old files stay beside them as `*.previous`, those of the
        next time as `*.previous-2` and so on.
    """
    subgraph = read_folder(place.data)
    if name is not None and name != subgraph.name:
        raise ConfigError(
            f"--name {name!r} but {place.data / 'org.toml'} says {subgraph.name!r}: the two must "
            "agree"
        )
    private, public, secret = (place.out / file for file in (KEY, PUBLIC, SECRET))
    _refuse_others(place, subgraph.name)
    if renew:
        _put_aside((private, secret, place.identity))
    for folder in (private.parent, place.store, *(place.out / each for each in _STATES)):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not private.exists():
        make_supernode_key(private, public, _comment(subgraph.name))
    line = private_to_public(private)
    public.write_text(f"{line} {_comment(subgraph.name)}\n", encoding="utf-8")
    if not secret.exists():
        write_private(secret, os.urandom(32))
    if renew or not _runtime(place, ".key").exists():
        _make_runtime_certificate(place, subgraph.name)
    identity = stored_secrets(place.store / names.OFFLINE, {}, trust=False).identity
    write_private(place.owner, f"{subgraph.name}\n".encode())
    request = sign_request(identity, subgraph.name, line, schema_digest(subgraph))
    (place.out / FILE).write_text(request.to_json(), encoding="utf-8")
    about = "Local to this organisation; start.sh, the units and compose.yml read it."
    write_environment(place.out / ENVIRONMENT, about, _environment(place))
    write_start_commands(place.out, request.name, request.fingerprint)
    return request


def _refuse_others(place: Place, name: str) -> None:
    """Refuse folders that hold another organisation's keys or store."""
    for option, folder, owner in (
        ("--out", place.out, _owner_of_keys(place.out, name)),
        ("--store", place.store, _owner_of_store(place)),
    ):
        if owner not in (None, name):
            raise ConfigError(
                f"{option} {folder} belongs to {owner!r} and this request is from {name!r}: each "
                "organisation has folders of its own, name another"
            )


def _owner_of_keys(out: Path, name: str) -> str | None:
    """Whose keys a folder holds: by its request, or else by the comment of the SuperNode key."""
    try:
        return str(json.loads((out / FILE).read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        pass
    try:
        comment = (out / PUBLIC).read_text(encoding="utf-8").split()[2]
    except (OSError, ValueError, IndexError):
        return None
    return name if comment == _comment(name) else comment.removeprefix("fedlap-")


def _owner_of_store(place: Place) -> str | None:
    """Whose store it is: by the name in it, or else by the organisation folder around it."""
    if place.owner.exists():
        return place.owner.read_text(encoding="utf-8", errors="replace").strip()
    around = place.store.parent
    return read_organisation(around).name if (around / ORGANISATION).exists() else None


def _put_aside(paths: Sequence[Path]) -> None:
    """Keep old keys under one number that none of them has yet: nothing is ever overwritten."""
    endings = (_PREVIOUS if number == 1 else f"{_PREVIOUS}-{number}" for number in count(1))
    ending = next(
        each
        for each in endings
        if not any(path.with_name(path.name + each).exists() for path in paths)
    )
    for path in paths:
        if path.exists():
            path.rename(path.with_name(path.name + ending))


def _runtime(place: Place, ending: str) -> Path:
    return place.out / f"{RUNTIME}{ending}"


def _make_runtime_certificate(place: Place, name: str) -> None:
    """TLS between SuperNode and SuperExec; nobody needs the authority's key any more."""
    authority = make_authority(name)
    server = make_server(authority, name, (*LOOPBACK, "supernode"), CA_DAYS)
    server.save(_runtime(place, ".crt"), _runtime(place, ".key"))
    certificate = authority.certificate.public_bytes(Encoding.PEM)
    _runtime(place, "-ca.crt").write_bytes(certificate)


def _comment(name: str) -> str:
    """The comment of a key file: one word."""
    return "fedlap-" + "".join(letter if letter.isalnum() else "-" for letter in name)


def _environment(place: Place) -> dict[str, object]:
    """Local facts for start.sh, systemd and compose; single quotes mean the same to all three."""
    return {
        "FEDLAP_BIN": Path(sys.executable).parent,
        "FEDLAP_ORG_DATA": place.data,
        "FEDLAP_ORG_STORE": place.store,
        "FEDLAP_NODE_PORT": place.port,
        "FEDLAP_UID": os.getuid(),
        "FEDLAP_GID": os.getgid(),
    }
