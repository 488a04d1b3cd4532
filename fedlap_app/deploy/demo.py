"""A whole federation in one folder: all parties' keys in one place, so for demonstrations only."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedlap_app.deploy.coordinator import Wishes, addresses, issue
from fedlap_app.deploy.organisation import NODE_PORT, make_request, place_of
from fedlap_app.deploy.paths import check_served_path
from fedlap_app.errors import ConfigError
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.privacy.addresses import host_and_port, is_address, is_loopback
from fedlap_app.privacy.federation import FILE, Federation, read_federation_file

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
    wishes = _wishes(f"demo {spec.dataset}", servers, port, listen)
    check_served_path(out / "coordinator")
    _, _, _, own = addresses(None, wishes)
    parts = load_federation(spec)
    _check_ports(range(node_port, node_port + len(parts)), (port, own[1]))
    requests = []
    for number, part in enumerate(parts):
        folder = out / "organisations" / part.name
        write_folder(part, folder / "data")
        requests.append(make_request(place_of(folder / "data", folder, port=node_port + number)))
    federation = issue(out / "coordinator", requests, wishes)
    for member in federation.members:
        given = out / "coordinator" / "organisations" / member.name
        shutil.copytree(given, out / "organisations" / member.name, dirs_exist_ok=True)
    # The coordinator's copy comes last: without it a demonstration counts as not made.
    for folder in (out, out / "coordinator"):
        (folder / DONE).write_text(WARNING + "\n", encoding="utf-8")
    return Demo(out, federation)


def _wishes(name: str, servers: Sequence[str], port: int, listen: str | None) -> Wishes:
    """Without a listening address the SuperLink stays on the loopback if nobody else needs it."""
    if listen is None and all(is_loopback(server) for server in servers):
        own = servers[0] if is_address(servers[0]) else "127.0.0.1"
        listen = host_and_port(own, port)
    return Wishes(name=name, servers=tuple(servers), port=port, listen=listen)


def _check_ports(nodes: range, taken: Sequence[int]) -> None:
    """All processes of a demonstration run on one machine, so each needs a port of its own."""
    if nodes[-1] > 65535:
        raise ConfigError(
            f"--node-port {nodes[0]} and {len(nodes)} organisations need ports up to {nodes[-1]}: "
            f"take at most {65536 - len(nodes)}"
        )
    both = next((port for port in taken if port in nodes), None)
    if both is not None:
        raise ConfigError(
            f"port {both} is the SuperLink's and a SuperNode's, {nodes[0]} to {nodes[-1]}: "
            "give another --port or --node-port"
        )


def find_demo(out: Path) -> Demo | None:
    """The demonstration that a folder holds already, if it is whole."""
    out = out.expanduser().absolute()
    if not (out / "coordinator" / DONE).is_file():
        return None
    return Demo(out, read_federation_file(out / "coordinator" / FILE))
