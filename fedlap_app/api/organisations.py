"""Who takes part: organisations with their parts of one graph, from a benchmark or from folders."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.agreement import check_federation
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import federation_folders, read_folder, write_folder
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import Value, key_of, nearest, plain
from fedlap_app.settings import Settings
from fedlap_app.store import places

MEMORY = "memory"
"""What the settings of a run call data that was never on disk."""

_SHOWN = 6


class Organisations(Sequence[Subgraph]):
    """Organisations that train together, each with its part of one graph.

    A sequence of their parts in the order of their names; an index may also be a name. Made by
    `load`, `read` and `split`.

    Attributes
    ----------
    names : names of the organisations.
    facts : settings that describe the data, by key, such as ``dataset`` and ``partition``.
    seed : the seed that divided the data; a run uses it unless it is given another one.
    folders : organisation folders that the parts were read from; None without one.
    """

    def __init__(
        self,
        parts: Sequence[Subgraph],
        facts: Mapping[str, Value],
        *,
        seed: int = 0,
        folders: Sequence[Path | None] = (),
    ) -> None:
        self._parts = list(parts)
        self.facts = {**facts, "clients": len(parts)}
        self.seed = seed
        self.folders = tuple(folders) or (None,) * len(parts)
        self.names = tuple(part.name for part in parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[Subgraph]:
        return iter(self._parts)

    def __contains__(self, item: object) -> bool:
        return item in self.names or any(item is part for part in self._parts)

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - a name, a position or a slice
        if not isinstance(key, str):
            try:
                return self._parts[key]
            except (IndexError, TypeError) as error:
                raise type(error)(
                    f"there is no organisation {key!r}: give a name, or a number below {len(self)}"
                ) from None
        if key not in self.names:
            near = nearest(key, self.names)
            raise DataError(f"there is no organisation {key!r}: the nearest name is {near!r}")
        return self._parts[self.names.index(key)]

    def save(self, folder: str | os.PathLike[str], fmt: str = "csv") -> None:
        """Write an organisation folder for each, below a folder that is empty or not there.

        Parameters
        ----------
        folder
            What `read` and ``fedlap train --data`` take.
        fmt
            csv or parquet.
        """
        target = places.path_of(folder, "folder")
        require_empty(target)
        for part in self._parts:
            write_folder(part, target / part.name, fmt)

    def __repr__(self) -> str:
        first = self._parts[0]
        nodes = sum(part.num_nodes for part in self._parts)
        lines = [
            f"{len(self)} organisations{self._origin()}: {nodes:,} nodes, "
            f"{first.num_features:,} features, {first.num_classes} classes"
        ]
        lines += [f"  {_line(part)}" for part in self._parts[:_SHOWN]]
        if len(self) > _SHOWN:
            lines.append(f"  and {len(self) - _SHOWN} more")
        return "\n".join(lines)

    def _origin(self) -> str:
        if data := self.facts["data"]:
            return "" if data == MEMORY else f" of {data}"
        return (
            f" of {self.facts['dataset']} ({self.facts['partition']} partition, seed {self.seed})"
        )


def _line(part: Subgraph) -> str:
    listings = 1 if part.directed else 2
    counts = "/".join(f"{int(m.sum()):,}" for m in (part.train_mask, part.val_mask, part.test_mask))
    return (
        f"{part.name}: {part.num_nodes:,} nodes, {part.intra_edges[1].size // listings:,} edges "
        f"inside, {part.inter_edges[1].size // listings:,} to {len(part.partners)} others, "
        f"{counts} train/val/test"
    )


def require_empty(folder: Path) -> None:
    """Refuse to write over what is there."""
    if folder.is_file():
        raise DataError(f"{folder} is a file: name a folder to write")
    if folder.is_dir() and any(folder.iterdir()):
        raise DataError(f"{folder} is not empty: name another folder")


def load(
    name: str,
    *,
    clients: int = 0,
    partition: str = "auto",
    seed: int = 0,
    directed: bool = False,
    train_ratio: float = DataSpec.train_ratio,
    val_ratio: float = DataSpec.val_ratio,
    test_ratio: float = DataSpec.test_ratio,
    accounts: int = DataSpec.accounts,
    neighbours: int = DataSpec.neighbours,
    split_seed: int = DataSpec.split_seed,
) -> Organisations:
    """Divide a benchmark among organisations; the same arguments give the same parts.

    Parameters
    ----------
    name
        A data set that ``fedlap datasets`` lists, for example "cora".
    clients
        Number of organisations; 0: as many as ``fedlap train`` takes, two.
    partition
        Who holds which node: "auto" (natural owners, else random), "owner", "random", "louvain"
        or "kmeans".
    seed
        Decides the partition and the split, and the run unless that is given another one.
    directed
        Keep the direction of edges.
    train_ratio, val_ratio, test_ratio
        Shares of the labelled nodes.
    accounts
        Size of the data set "banks".
    neighbours
        Nearest neighbours in the data set "digits".
    split_seed
        Decides the split alone, drawn as torch's `random_split` does; -1: `seed` does.
    """
    from fedlap_app.flower.grids.in_process import DEFAULT_CLIENTS

    spec = DataSpec(
        dataset=name,
        clients=plain(clients) or DEFAULT_CLIENTS,
        partition=partition,
        seed=plain(seed),
        directed=directed,
        train_ratio=plain(train_ratio),
        val_ratio=plain(val_ratio),
        test_ratio=plain(test_ratio),
        accounts=plain(accounts),
        neighbours=plain(neighbours),
        split_seed=plain(split_seed),
    )
    return from_spec(spec)


def from_spec(spec: DataSpec) -> Organisations:
    """The organisations that a description of a benchmark names."""
    facts: dict[str, Value] = {key_of(key): value for key, value in asdict(spec).items()}
    del facts["seed"]
    return Organisations(load_federation(spec), {**facts, "data": ""}, seed=spec.seed)


def named_by(settings: Settings) -> Organisations:
    """The organisations of a benchmark or of folders, as settings name them."""
    from fedlap_app.flower.grids.in_process import count_clients

    if settings.data:
        return read(settings.data, directed=settings.directed)
    return from_spec(settings.with_clients(count_clients(settings)).data_spec)


def read(folder: str | os.PathLike[str], *, directed: bool = False) -> Organisations:
    """Read organisation folders: your own data.

    Parameters
    ----------
    folder
        Holds one organisation folder for each (org.toml, nodes.csv, edges.csv; see
        docs/own-data.md).
    directed
        Keep the direction of edges.
    """
    root = places.path_of(folder, "folder")
    folders = federation_folders(root)
    parts = [read_folder(each, directed=directed) for each in folders]
    facts: dict[str, Value] = {"data": str(root), "directed": directed}
    return Organisations(parts, facts, folders=folders)


def in_memory(parts: Sequence[Subgraph], *, seed: int = 0) -> Organisations:
    """Organisations whose parts were made here; all of them must fit together."""
    problems = check_federation(parts)
    if problems:
        raise ConfigError(problems[0])
    facts: dict[str, Value] = {"data": MEMORY, "directed": parts[0].directed}
    return Organisations(parts, facts, seed=seed)
