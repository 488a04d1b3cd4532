"""Every data set by its name."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs import banks, benchmarks, digits
from fedlap_app.graphs.graph import Graph

_ARXIV = "ogbn-arxiv"
_GENERATED = 128
"""Columns of the features that are made up for it, as many as the published ones have."""

_APART = 0.25  # deviation of the classes' means, where that of a node's noise is 1


@dataclass(frozen=True)
class Request:
    """What may shape a data set; each data set looks at its own part of it."""

    clients: int
    seed: int
    accounts: int
    neighbours: int
    directed: bool


@dataclass(frozen=True)
class Dataset:
    """One entry of the list of data sets.

    Attributes
    ----------
    name : what users type.
    about : what it is.
    nodes, edges, features, classes : size; 0 where it depends on the options.
    make : builds the graph.
    has_owners : whether nodes have natural owners.
    depends_on : fields of `Request` that change the graph.
    files : benchmark whose files it is made from; empty: its own, or none.
    """

    name: str
    about: str
    nodes: int
    edges: int
    features: int
    classes: int
    make: Callable[[Request], Graph]
    has_owners: bool = False
    depends_on: tuple[str, ...] = ()
    files: str = ""


def _make_banks(request: Request) -> Graph:
    return banks.make_banks(
        request.accounts, request.clients, request.seed, directed=request.directed
    )


def _make_digits(request: Request) -> Graph:
    return digits.make_digits(request.neighbours, directed=request.directed)


def _make_benchmark(name: str) -> Callable[[Request], Graph]:
    return lambda request: benchmarks.load_benchmark(name, directed=request.directed)


def _make_arxiv(request: Request) -> Graph:
    """The graph of ogbn-arxiv with features drawn around a mean for each class."""
    graph = benchmarks.load_benchmark(_ARXIV, directed=request.directed)
    rng = np.random.default_rng(request.seed)
    means = _APART * rng.standard_normal((len(graph.classes), _GENERATED), dtype=np.float32)
    features = rng.standard_normal((graph.num_nodes, _GENERATED), dtype=np.float32)
    features += means[graph.labels]
    names = tuple(f"f{number}" for number in range(_GENERATED))
    return replace(graph, features=features, feature_names=names, kinds=())


_BENCHMARKS = (
    ("cora", "citations among papers on machine learning", 2708, 5278, 1433, 7),
    ("citeseer", "citations among papers on computer science", 3327, 4552, 3703, 6),
    ("pubmed", "citations among papers on diabetes", 19717, 44324, 500, 3),
    ("chameleon", "links among Wikipedia pages; neighbours differ", 2277, 31371, 2325, 5),
    ("photo", "photo goods at Amazon that are bought together", 7650, 119081, 745, 8),
    ("ogbn-arxiv", "citations among arXiv papers; structure only", 169343, 1157799, 0, 40),
    ("acm", "papers of the ACM that share authors", 3025, 13128, 1870, 3),
    ("coauthor_cs", "computer scientists who wrote papers together", 18333, 81894, 6805, 15),
    ("uai", "links among web pages", 3067, 28308, 4973, 19),
    ("actor", "actors on the same pages; neighbours differ", 7600, 26659, 932, 5),
    ("chameleon_filtered", "chameleon without duplicate pages", 890, 8854, 2325, 5),
    ("minesweeper", "cells of a game; score by roc-auc", 10000, 39402, 7, 2),
)
_ALL = (
    Dataset(
        "banks",
        "accounts at several banks and their transfers, generated",
        *(0, 0, len(banks.FEATURES), len(banks.CLASSES)),
        _make_banks,
        has_owners=True,
        depends_on=("clients", "seed", "accounts"),
    ),
    Dataset(
        "digits",
        "handwritten digits and their mutual nearest neighbours",
        *(digits.NUM_DIGITS, 0, 64, 10),
        _make_digits,
        depends_on=("neighbours",),
    ),
    *(Dataset(*facts, _make_benchmark(facts[0])) for facts in _BENCHMARKS),
    Dataset(
        f"{_ARXIV}-generated",
        "citations among arXiv papers, with generated features",
        *(169343, 1157799, _GENERATED, 40),
        _make_arxiv,
        depends_on=("seed",),
        files=_ARXIV,
    ),
)
DATASETS = {entry.name: entry for entry in _ALL}


def find_dataset(name: str) -> Dataset:
    """Entry of a data set, or an error that names the nearest choice."""
    if name in DATASETS:
        return DATASETS[name]
    near = difflib.get_close_matches(str(name).lower(), DATASETS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise DataError(f"Unknown data set {name!r}: {hint}The choices are {', '.join(DATASETS)}.")


def availability(name: str) -> str:
    """Whether a data set is ``here``, would need a ``download`` or files that users bring."""
    entry = find_dataset(name)
    files = entry.files or entry.name
    if files not in benchmarks.BENCHMARKS or benchmarks.is_here(files):
        return "here"
    return "download" if benchmarks.BENCHMARKS[files].reader else "files needed"
