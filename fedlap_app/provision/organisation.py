"""What happens at an organisation: its keys and its identity are made there and stay there."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.methods.offline.secrets import stored_secrets
from fedlap_app.private_files import write_private
from fedlap_app.provision.certificates import CA_DAYS, make_authority, make_server
from fedlap_app.provision.names import LOOPBACK
from fedlap_app.provision.request import FILE, Request, sign_request
from fedlap_app.provision.supernode_key import make_supernode_key, private_to_public

ENVIRONMENT = "organisation.env"
KEY, PUBLIC, SECRET = "keys/supernode", "keys/supernode.pub", "keys/superexec-secret"
RUNTIME = "keys/runtime"  # .key, .crt and -ca.crt of the SuperNode towards its own SuperExec
_PREVIOUS = ".previous"


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
        Folder of the client's store (default: `store` in the organisation folder).
    port
        Port on the loopback at which SuperNode and SuperExec meet.
    """

    data: Path
    out: Path
    store: Path
    port: int = 9094

    def __post_init__(self) -> None:
        for path in (self.data, self.out, self.store):
            # Such a path could not be written into start commands, units and node-config alike.
            if any(letter in str(path) for letter in "'\"\\\n\r`"):
                raise ConfigError(
                    f"The path {str(path)!r} has a quote, backslash or line break: move the folder"
                )

    @property
    def identity(self) -> Path:
        """File of the FedLap identity."""
        return self.store / "offline" / "identity"


def place_of(data: Path, out: Path, store: Path | None = None, port: int = 9094) -> Place:
    """Absolute paths of an organisation."""
    data = data.expanduser().absolute()
    store = (store or data / "store").expanduser().absolute()
    return Place(data, out.expanduser().absolute(), store, port)


def make_request(place: Place, name: str | None = None, *, renew: bool = False) -> Request:
    """Make the keys that are missing and write the request.

    Parameters
    ----------
    place : where things are kept.
    name : of the organisation; must be that of org.toml.
    renew : replace keys and identity; the old files stay beside them as `*.previous`.
    """
    subgraph = read_folder(place.data)
    if name is not None and name != subgraph.name:
        raise ConfigError(
            f"--name {name!r} but {place.data / 'org.toml'} says {subgraph.name!r}: the two must "
            "agree"
        )
    private, public, secret = (place.out / file for file in (KEY, PUBLIC, SECRET))
    if renew:
        for path in (private, secret, place.identity):
            if path.exists():
                path.replace(path.with_name(path.name + _PREVIOUS))
    for folder in (private.parent, place.store):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not private.exists():
        make_supernode_key(private, public, _comment(subgraph.name))
    line = private_to_public(private)
    public.write_text(f"{line} {_comment(subgraph.name)}\n", encoding="utf-8")
    if not secret.exists():
        write_private(secret, os.urandom(32))
    if renew or not _runtime(place, ".key").exists():
        _make_runtime_certificate(place, subgraph.name)
    identity = stored_secrets(place.store / "offline", {}, trust=False).identity
    request = sign_request(identity, subgraph.name, line, schema_digest(subgraph))
    (place.out / FILE).write_text(request.to_json(), encoding="utf-8")
    (place.out / ENVIRONMENT).write_text(_environment(place), encoding="utf-8")
    return request


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


def _environment(place: Place) -> str:
    """Local facts for start.sh, systemd and compose; single quotes mean the same to all three."""
    values = {
        "FEDLAP_BIN": Path(sys.executable).parent,
        "FEDLAP_ORG_DATA": place.data,
        "FEDLAP_ORG_STORE": place.store,
        "FEDLAP_NODE_PORT": place.port,
        "FEDLAP_UID": os.getuid(),
        "FEDLAP_GID": os.getgid(),
    }
    return "# Local to this organisation; start.sh, the units and compose.yml read it.\n" + "".join(
        f"{key}='{value}'\n" for key, value in values.items()
    )
