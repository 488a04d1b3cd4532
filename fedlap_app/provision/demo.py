"""A whole federation in one folder: all parties' keys in one place, so for demonstrations only."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.provision.coordinator import Wishes, issue
from fedlap_app.provision.federation import FILE, Federation, read_federation_file
from fedlap_app.provision.names import LOOPBACK
from fedlap_app.provision.organisation import NODE_PORT, make_request, place_of

WARNING = (
    "For demonstrations only: one folder holds the private keys of all parties, so nothing is "
    "secret from anyone."
)
DONE = "DEMONSTRATION.txt"


@dataclass(frozen=True)
class Demo:
    """Where the parts of a demonstration are."""

    out: Path
    federation: Federation

    @property
    def superlink(self) -> Path:
        """Folder of the coordinator's start commands."""
        return self.out / "coordinator" / "superlink"

    def organisation(self, name: str) -> Path:
        """Folder of one organisation: data, keys and start commands."""
        return self.out / "organisations" / name


def make_demo(
    out: Path,
    spec: DataSpec,
    *,
    servers: Sequence[str] = ("127.0.0.1",),
    port: int = 8000,
    node_port: int = NODE_PORT,
    listen: str | None = None,
) -> Demo:
    """Data, requests, certificates and start commands of every party in one folder.

    Parameters
    ----------
    out : folder to write, which must be new or hold nothing but folders (volumes, say).
    spec : the data set and how it is divided.
    servers : names and addresses of the SuperLink.
    port : of the SuperLink.
    node_port : of the first SuperNode on the loopback; the next ones follow.
    listen : ADDRESS:PORT of the SuperLink (default: the loopback when all servers are there,
        else all addresses).
    """
    out = out.expanduser().absolute()
    if out.exists() and (not out.is_dir() or any(not each.is_dir() for each in out.rglob("*"))):
        raise ConfigError(f"{out} is not an empty folder: name a new one.")
    parts = load_federation(spec)
    requests = []
    for number, part in enumerate(parts):
        folder = out / "organisations" / part.name
        write_folder(part, folder / "data")
        requests.append(make_request(place_of(folder / "data", folder, port=node_port + number)))
    if listen is None and set(servers) <= set(LOOPBACK):
        listen = f"127.0.0.1:{port}"
    wishes = Wishes(name=f"demo {spec.dataset}", servers=tuple(servers), port=port, listen=listen)
    federation = issue(out / "coordinator", requests, wishes)
    for member in federation.members:
        given = out / "coordinator" / "organisations" / member.name
        shutil.copytree(given, out / "organisations" / member.name, dirs_exist_ok=True)
    # The coordinator's copy comes last: without it a demonstration counts as not made.
    for folder in (out, out / "coordinator"):
        (folder / DONE).write_text(WARNING + "\n", encoding="utf-8")
    return Demo(out, federation)


def find_demo(out: Path) -> Demo | None:
    """The demonstration that a folder holds already, if it is whole."""
    out = out.expanduser().absolute()
    if not (out / "coordinator" / DONE).is_file():
        return None
    return Demo(out, read_federation_file(out / "coordinator" / FILE))
