"""From the description of a benchmark to the parts that its organisations hold, cached on disk."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs import banks
from fedlap_app.graphs.datasets import Request, find_dataset
from fedlap_app.graphs.graph import cut
from fedlap_app.graphs.partitions import divide, resolve_partition
from fedlap_app.graphs.splits import check_ratios, draw_masks, published_masks
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.store import places
from fedlap_app.store.cache import drop_entry, ensure_entry

FORMAT = 2  # part of the cache key: raise it when the same spec gives other data
T = TypeVar("T")


def check_whole(key: str, value: object, least: int) -> None:
    """Refuse what is no whole number from `least` on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ConfigError(f"{key} = {value!r} is not a whole number from {least} on.")


@dataclass(frozen=True)
class DataSpec:
    """Which graph, divided how: the same spec gives the same parts on every machine.

    Attributes
    ----------
    dataset : a name that `fedlap datasets` lists.
    clients : number of organisations.
    partition : auto (natural owners, else random), owner, random, louvain or kmeans.
    seed : of the generated graph, the partition and the split, independently of each other.
    directed : keep the direction of edges.
    train_ratio, val_ratio, test_ratio : shares of the labelled nodes.
    accounts : size of the data set `banks`.
    neighbours : nearest neighbours in the data set `digits`.
    split_seed : of the split alone, drawn as by torch's `random_split`; -1: it follows from `seed`.
    """

    dataset: str = "banks"
    clients: int = 5
    partition: str = "auto"
    seed: int = 0
    directed: bool = False
    train_ratio: float = 0.1
    val_ratio: float = 0.1
    test_ratio: float = 0.8
    accounts: int = 2000
    neighbours: int = 8
    split_seed: int = -1

    def __post_init__(self) -> None:
        entry = find_dataset(self.dataset)
        resolve_partition(self.partition, has_owners=entry.has_owners)
        for key, least in (("clients", 1), ("seed", 0), ("neighbours", 1)):
            check_whole(key, getattr(self, key), least)
        if entry.name == "banks":
            banks.check_size(self.accounts, self.clients)
        check_ratios(self.train_ratio, self.val_ratio, self.test_ratio)

    def key(self) -> str:
        """Name of the cache entry: only what matters for the data set counts."""
        entry = find_dataset(self.dataset)
        facts = dataclasses.asdict(self)
        for field in ("accounts", "neighbours"):
            if field not in entry.depends_on:
                del facts[field]
        if self.split_seed < 0:
            del facts["split_seed"]
        else:
            facts["split_by"] = "torch"
        facts["partition"] = resolve_partition(self.partition, has_owners=entry.has_owners)
        text = json.dumps([FORMAT, facts], sort_keys=True)
        return f"{self.dataset}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def build_federation(spec: DataSpec) -> list[Subgraph]:
    """Make the parts without looking at the cache."""
    request = Request(spec.clients, spec.seed, spec.accounts, spec.neighbours, spec.directed)
    graph = find_dataset(spec.dataset).make(request)
    assignment, names = divide(graph, spec.partition, spec.clients, spec.seed)
    ratios = (spec.train_ratio, spec.val_ratio, spec.test_ratio)
    if spec.split_seed < 0:
        masks = draw_masks(graph.labels, ratios, np.random.default_rng([spec.seed, 0x51]))
    else:
        masks = published_masks(graph.labels, ratios, spec.split_seed)
    return cut(graph, assignment, names, masks)


def load_federation(spec: DataSpec) -> list[Subgraph]:
    """Parts of all organisations, in the order of their names."""
    return _from_cache(
        spec, lambda entry: [Subgraph.load(_member(entry, i)) for i in range(spec.clients)]
    )


def load_member(spec: DataSpec, index: int) -> Subgraph:
    """Part of one organisation; once prepared, nothing else is read."""
    if not 0 <= index < spec.clients:
        raise ConfigError(
            f"There is no organisation {index}: with {spec.clients} clients take 0 to "
            f"{spec.clients - 1}."
        )
    return _from_cache(spec, lambda entry: Subgraph.load(_member(entry, index)))


def _from_cache(spec: DataSpec, read: Callable[[Path], T]) -> T:
    """Read an entry, building it when it is not there and again when it is damaged."""
    entry = places.cache_dir() / "federations" / spec.key()

    def build(folder: Path) -> None:
        for index, part in enumerate(build_federation(spec)):
            part.save(_member(folder, index))

    ensure_entry(entry, build)
    try:
        return read(entry)
    except DataError:
        drop_entry(entry)
        ensure_entry(entry, build)
        return read(entry)


def _member(entry: Path, index: int) -> Path:
    return entry / f"{index:06d}.graph"
