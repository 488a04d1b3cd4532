"""Which organisation a client speaks for, from what Flower knows of it."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from pathlib import Path

from flwr.app import Context

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.flower.server.parts import Parts, subgraphs_of
from fedlap_app.graphs.federation import load_member
from fedlap_app.graphs.folder import federation_folders, read_folder
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import Value
from fedlap_app.methods.organisation import Organisation
from fedlap_app.privacy.federation import FILE as FEDERATION_FILE
from fedlap_app.privacy.pins import org_pins
from fedlap_app.privacy.policy import SAFE, SIMULATED, read_policy
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import places
from fedlap_app.store.folders import Store

_CACHED = 64


class Seat(Context):
    """Context of a client in this process whose organisation is there already.

    Parameters
    ----------
    context : Context
        What Flower knows of the client.
    organisation : Organisation
        Whom the client speaks for; it lives as long as the grid.
    """

    def __init__(self, context: Context, organisation: Organisation) -> None:
        super().__init__(
            context.run_id, context.node_id, context.node_config, context.state, context.run_config
        )
        self.organisation = organisation


_organisations: "OrderedDict[Hashable, Organisation]" = OrderedDict()


def organisation_of(context: Context) -> Organisation:
    """Organisation of a client, from its node configuration.

    A process that serves many messages keeps it; one that was started for a single message
    builds it from the organisation folder or from the data cache.
    """
    if isinstance(context, Seat):
        return context.organisation
    # With its type, as True, 1 and 1.0 are one key.
    said = sorted((key, type(value), value) for key, value in context.run_config.items())
    settings = _settings(tuple(said))
    key = _identity(context, settings)
    if key in _organisations:
        _organisations.move_to_end(key)
        return _organisations[key]
    organisation = _load(context, settings)
    _organisations[key] = organisation
    while len(_organisations) > _CACHED:
        _organisations.popitem(last=False)
    return organisation


@lru_cache(maxsize=_CACHED)
def _settings(said: tuple[tuple[str, type, Value], ...]) -> Settings:
    """Settings of a run configuration, which comes with every message; bad ones are not kept."""
    return parse_settings({key: value for key, _, value in said})


def _identity(context: Context, settings: Settings) -> Hashable:
    """What an organisation depends on, the state of its files included."""
    folder = _own_folder(context, settings)
    stamp = _stamp(folder) if folder else ""
    federation = federation_file(context)
    if federation is not None and federation.is_file():
        stamp += str(federation.stat().st_mtime_ns)
    return tuple(sorted(context.node_config.items())), settings, stamp, places.home()


def _stamp(folder: Path) -> str:
    """Changes whenever a file of the organisation folder does."""
    files = sorted(entry for entry in folder.glob("*") if entry.is_file())
    return repr([(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in files])


def _load(context: Context, settings: Settings) -> Organisation:
    folder = _own_folder(context, settings)
    if folder is not None:
        subgraph = read_folder(folder, directed=settings.directed)
    else:
        index, count = _partition(context, settings)
        try:
            subgraph = load_member(settings.with_clients(count).data_spec, index)
        except DataError as error:
            # Benchmark data is public, so the server may read what is wrong with it.
            raise ConfigError(str(error)) from None
    store = Store(_store_root(context, settings, subgraph.name))
    if not _is_deployed(context):
        known = settings if folder else settings.with_clients(_partition(context, settings)[1])
        return _simulated(subgraph, settings, store, folder, lambda: subgraphs_of(known))
    policy = read_policy(folder, SAFE) if folder else SAFE
    return Organisation(subgraph, settings, store, folder, federation_file(context), policy)


def hand_over(
    subgraph: Subgraph, settings: Settings, folder: Path | None, parts: Parts = ()
) -> Organisation:
    """Organisation of a simulation whose part is in memory.

    Parameters
    ----------
    subgraph : Subgraph
        What it holds.
    settings : Settings
        Of the run.
    folder : Path | None
        Organisation folder that the part was read from, whose policy counts.
    parts : sequence of Part
        What all of them hold.
    """
    store = Store(places.stores_at(settings.store_dir) / subgraph.name)
    return _simulated(subgraph, settings, store, folder, lambda: subgraphs_of(settings, parts))


def _simulated(
    subgraph: Subgraph,
    settings: Settings,
    store: Store,
    folder: Path | None,
    whole: Callable[[], Sequence[Subgraph]],
) -> Organisation:
    policy = read_policy(folder, SIMULATED) if folder else SIMULATED
    named = org_pins(folder / "org.toml") if folder else ()
    return Organisation(
        subgraph, settings, store, policy=policy, named=frozenset(named), whole=whole
    )


def _is_deployed(context: Context) -> bool:
    """Whether the client has a folder of its own, so that no secret may follow from a seed."""
    return "data-dir" in context.node_config


def federation_file(context: Context) -> Path | None:
    """The federation file that the node configuration names, else the one beside org.toml."""
    if "federation" in context.node_config:
        return Path(str(context.node_config["federation"]))
    if not _is_deployed(context):
        return None
    beside = Path(str(context.node_config["data-dir"])) / FEDERATION_FILE
    return beside if beside.is_file() else None


def _own_folder(context: Context, settings: Settings) -> Path | None:
    """The organisation folder, when the client has one."""
    if "data-dir" in context.node_config:
        return Path(str(context.node_config["data-dir"]))
    if not settings.data:
        return None
    index, count = _partition(context, settings)
    folders = federation_folders(Path(settings.data))
    if len(folders) != count:
        raise ConfigError(
            f"{settings.data} holds {len(folders)} organisation folders but the simulation has "
            f"{count} nodes: start it with num-supernodes={len(folders)}"
        )
    return folders[index]


def _partition(context: Context, settings: Settings) -> tuple[int, int]:
    """Index of the client and number of clients, in a simulation."""
    try:
        index = int(context.node_config["partition-id"])
        count = int(context.node_config["num-partitions"])
    except KeyError:
        raise ConfigError(
            "this node has neither data-dir nor partition-id: start the SuperNode with "
            "--node-config \"data-dir='/path/to/organisation'\""
        ) from None
    if settings.clients not in (0, count):
        raise ConfigError(
            f"clients = {settings.clients} but the simulation has {count} nodes: set clients = 0 "
            f"or start it with num-supernodes={settings.clients}"
        )
    return index, count


def _store_root(context: Context, settings: Settings, name: str) -> Path:
    if "store-dir" in context.node_config:
        return Path(str(context.node_config["store-dir"]))
    if "data-dir" in context.node_config:
        return places.own_store(Path(str(context.node_config["data-dir"])))
    return places.stores_at(settings.store_dir) / name
