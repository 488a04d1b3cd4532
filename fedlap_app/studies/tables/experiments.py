"""The tables and figures: which columns they have, and which systems they show."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fedlap_app.errors import ConfigError

DATASETS = ("cora", "citeseer", "pubmed", "chameleon", "photo")
TRAIN_RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5)
RANKS = (5, 10, 20, 50, 100)
LAMBDAS = (0.0, 0.5, 1.0, 5.0, 10.0, 100.0)
CLIENTS = (5, 10, 20)
MOST_CLIENTS = (2, 5, 10, 20, 50)


@dataclass(frozen=True)
class Column:
    """One column of a table, or one point of a figure.

    Attributes
    ----------
    at
        Its place on the axis.
    changes
        Settings that make it.
    curve
        What tells several curves of a system apart.
    """

    at: Any
    changes: dict[str, Any]
    curve: str = ""


@dataclass(frozen=True)
class Experiment:
    """A table or figure.

    Attributes
    ----------
    name, title
        On the command line, and above it.
    axis
        What its columns differ in.
    columns
        All of them.
    systems
        What it shows unless told; empty: all systems.
    datasets
        On which data unless told.
    source
        The paper's own table; empty: it has none, or figures that cannot be read.
    only
        For some systems the setting of the axis is another one.
    over
        What its chart has from left to right: the axis, or the bytes of each organisation.
    """

    name: str
    title: str
    axis: str
    columns: tuple[Column, ...]
    systems: tuple[str, ...] = ()
    datasets: tuple[str, ...] = DATASETS
    source: str = ""
    only: dict[str, str] = field(default_factory=dict)
    over: str = "axis"

    def changes_of(self, column: Column, system: str) -> dict[str, Any]:
        """Settings of a column for a system."""
        if self.axis in self.only.values():
            return {**column.changes, self.only.get(system, self.axis): column.at}
        return column.changes


def _shared(train: float) -> dict[str, float]:
    """Shares of the split around a training share, as much for validation as the paper."""
    return {"train-ratio": train, "val-ratio": 0.1, "test-ratio": round(0.9 - train, 6)}


_RANDOM = {"partition": "random", "clients": 10}
_STRUCTURE = ("fedlap", "fedlap+")
_MAIN = ("local", "fedsgd", "fedgcn", "fedstruct", "fedlap", "fedlap+", "central")

_ALL = (
    Experiment(
        "table1", "Accuracy by number of organisations, random partition", "clients",
        tuple(Column(count, {"partition": "random", "clients": count}) for count in CLIENTS),
        source="table1",
    ),
    Experiment(
        "table2", "Accuracy by partition, 10 organisations", "partition",
        tuple(
            Column(name, {"partition": name, "clients": 10})
            for name in ("louvain", "random", "kmeans")
        ),
        source="table2",
    ),
    Experiment(
        "rank", "Accuracy by vectors kept, for shares of training nodes", "rank",
        tuple(
            Column(rank, {**_RANDOM, **_shared(share), "rank": rank}, f"train {share:g}")
            for share in TRAIN_RATIOS
            for rank in RANKS
        ),
        systems=("fedlap+",), datasets=("cora",),
    ),
    Experiment(
        "lambda", "Accuracy by strength of the regulariser", "smoothing",
        tuple(Column(value, dict(_RANDOM)) for value in LAMBDAS),
        systems=_STRUCTURE, datasets=("cora", "pubmed", "citeseer"), source="lambda",
        only={"fedlap": "row-smoothing", "fedlap+": "smoothing", "fedlap+-sums": "smoothing"},
    ),
    Experiment(
        "ratio", "Accuracy by share of training nodes", "train-ratio",
        tuple(
            Column(share, {"partition": "kmeans", "clients": 10, **_shared(share)})
            for share in TRAIN_RATIOS
        ),
        systems=_MAIN, datasets=("chameleon",),
    ),
    Experiment(
        "clients", "Accuracy by number of organisations", "clients",
        tuple(Column(count, {"partition": "random", "clients": count}) for count in MOST_CLIENTS),
        systems=_MAIN, datasets=("cora",),
    ),
    Experiment(
        "communication", "Accuracy against bytes of each organisation", "clients",
        tuple(Column(count, {"partition": "random", "clients": count}) for count in CLIENTS),
        systems=("fedsgd", "fedgcn", "fedstruct", "fedpub", "fedlap", "fedlap+"),
        datasets=("cora",), source="table1", over="bytes",
    ),
)  # fmt: skip
EXPERIMENTS = {each.name: each for each in _ALL}


def experiment(name: str, *, clients: Sequence[int] = (), partition: str = "") -> Experiment:
    """A table or figure, with some of its columns only.

    Parameters
    ----------
    name
        One of `EXPERIMENTS`.
    clients
        Numbers of organisations that are wanted (default: all columns).
    partition
        In place of that of the columns; of a table of partitions its column alone is left.
    """
    found = EXPERIMENTS[name]
    columns = [
        column for column in found.columns if not clients or column.changes["clients"] in clients
    ]
    if not columns:
        have = sorted({column.changes["clients"] for column in found.columns})
        raise ConfigError(
            f"{name} has no column with {', '.join(map(str, clients))} clients: it has "
            f"{', '.join(map(str, have))}"
        )
    if partition:
        if found.axis == "partition":
            columns = [column for column in columns if column.at == partition]
        columns = [
            replace(column, changes={**column.changes, "partition": partition})
            for column in columns
        ]
    return replace(found, columns=tuple(columns), source="" if partition else found.source)
