"""Public benchmark graphs: read once with torch_geometric, then from a cache of our own.

Raw files come from the folder that ``FEDLAP_DATA`` names, laid out as torch_geometric expects
them, or from the internet. Labels are those of torch_geometric: it puts the 15 nodes of CiteSeer
without a known label into the first class, as every published result does. ogbn-arxiv is here
for its structure: its file holds no features, so that its nodes have none (d = 0).
"""

import contextlib
import io
import os
import shutil
import tempfile
import urllib.request
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Features, Ints
from fedlap_app.graphs.graph import Graph
from fedlap_app.store import places
from fedlap_app.store.cache import locked

FORMAT = 1  # of the cached graphs
_TIMEOUT = 15.0  # seconds without an answer after which a download is given up
_SPARSE_BELOW = 0.25  # share of non-zero features
EXTRA = ("acm", "coauthor_cs", "uai", "actor", "chameleon_filtered", "minesweeper")
"""Graphs to try defaults on: array files in the folder ``extra`` of the data folder."""


@dataclass(frozen=True)
class Benchmark:
    """Where a benchmark's raw files are and who reads them.

    Attributes
    ----------
    name : what users type.
    folder : folder of the raw files, relative to the data folder.
    reader : class of torch_geometric.datasets, or empty for a plain array file.
    options : arguments of the reader after the root folder.
    files : names of the raw files.
    urls : attribute of the reader with the address, and the path below it, for each file.
    """

    name: str
    folder: str
    reader: str
    options: tuple[Any, ...]
    files: tuple[str, ...]
    urls: Callable[[Any, str], str] = lambda reader, file: f"{reader.url.rstrip('/')}/{file}"


def _planetoid(name: str) -> Benchmark:
    ends = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name.lower()}.{end}" for end in ends)
    return Benchmark(name.lower(), f"{name}/raw", "Planetoid", (name,), files)


def _chameleon_url(reader: Any, file: str) -> str:  # noqa: ANN401
    part = "splits" if file.endswith(".npz") else "new_data/chameleon"
    return f"{reader.processed_url}/{part}/{file}"


_ALL = (
    _planetoid("Cora"),
    _planetoid("CiteSeer"),
    _planetoid("PubMed"),
    Benchmark(
        "chameleon",
        "chameleon/geom_gcn/raw",
        "WikipediaNetwork",
        ("chameleon", True),
        (
            "out1_node_feature_label.txt",
            "out1_graph_edges.txt",
            *(f"chameleon_split_0.6_0.2_{number}.npz" for number in range(10)),
        ),
        _chameleon_url,
    ),
    Benchmark("photo", "Photo/raw", "Amazon", ("Photo",), ("amazon_electronics_photo.npz",)),
    Benchmark("ogbn-arxiv", "ogbn-arxiv", "", (), ("arxiv_graph.npz",)),
    *(Benchmark(name, "extra", "", (), (f"{name}.npz",)) for name in EXTRA),
)
BENCHMARKS = {entry.name: entry for entry in _ALL}


def load_benchmark(name: str, *, directed: bool = False) -> Graph:
    """Benchmark graph with weights of 1.

    Parameters
    ----------
    name : key of `BENCHMARKS`.
    directed : keep direction, which only Chameleon has; elsewhere every edge is there both ways.
    """
    graph = _cached(BENCHMARKS[name])
    if directed:
        return graph
    return Graph(
        ids=graph.ids,
        features=graph.features,
        labels=graph.labels,
        edge_index=graph.edge_index,
        edge_weight=graph.edge_weight,
        classes=graph.classes,
        feature_names=graph.feature_names,
    )


def is_here(name: str) -> bool:
    """Whether a benchmark can be loaded without a download."""
    entry = BENCHMARKS[name]
    return _cache_file(entry).is_file() or all(_local(entry, file) for file in entry.files)


def _cache_file(entry: Benchmark) -> Path:
    return places.cache_dir() / "datasets" / f"{entry.name}-{FORMAT}.graph"


def _local(entry: Benchmark, file: str) -> Path | None:
    folder = os.environ.get("FEDLAP_DATA")
    path = Path(folder or ".").expanduser().absolute() / entry.folder / file
    return path if folder and path.is_file() else None


def _cached(entry: Benchmark) -> Graph:
    path = _cache_file(entry)
    with contextlib.suppress(DataError):  # not there yet, or damaged
        return Graph.load(path)
    with locked(path.with_suffix(".lock")):
        with contextlib.suppress(DataError):
            return Graph.load(path)
        graph = _read_arrays(entry) if not entry.reader else _read_with_torch(entry)
        graph.save(path)
        return graph


def _read_with_torch(entry: Benchmark) -> Graph:
    try:
        with _silence():
            from torch_geometric import datasets
    except ImportError as error:
        raise DataError(
            f"Reading {entry.name!r} needs torch_geometric: install it with "
            "`pip install torch-geometric`."
        ) from error
    reader = getattr(datasets, entry.reader)
    # The reader writes beside the raw files, so it works on links in a folder that is thrown away.
    with tempfile.TemporaryDirectory(prefix=".raw-", dir=_cache_file(entry).parent) as root:
        raw = Path(root) / entry.folder
        raw.mkdir(parents=True)
        for file in entry.files:
            _provide(entry, file, entry.urls(reader, file), raw / file)
        try:
            with _silence():
                data = reader(root, *entry.options)[0]
        except Exception as error:  # pickles and text of any content: whatever it raises
            raise DataError(
                f"The raw files of {entry.name!r} cannot be read "
                f"({type(error).__name__}): fetch them again."
            ) from error
        return _graph(
            entry.name, data.x.numpy(), data.y.numpy(), data.edge_index.numpy().astype(np.int64)
        )


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _provide(entry: Benchmark, file: str, url: str, target: Path) -> None:
    local = _local(entry, file)
    if local:
        try:
            target.symlink_to(local)
        except OSError:  # Windows without the right to make links
            shutil.copyfile(local, target)
        return
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except OSError as error:
        raise _missing(entry, f"and {url} does not answer") from error


def _missing(entry: Benchmark, also: str) -> DataError:
    folder = os.environ.get("FEDLAP_DATA")
    where = f"in FEDLAP_DATA ({folder})" if folder else "on this machine (FEDLAP_DATA is not set)"
    return DataError(
        f"The data set {entry.name!r} is not {where} {also}: put its raw files into "
        f"{entry.folder} of a folder and set FEDLAP_DATA to that folder, or use the data set "
        "banks or digits, which need no files."
    )


def _read_arrays(entry: Benchmark) -> Graph:
    path = _local(entry, entry.files[0])
    if path is None:
        raise _missing(entry, "and is not downloaded by FedLap")
    try:
        with np.load(path, allow_pickle=False) as file:
            pairs, labels = file["edge_index"].astype(np.int64), file["y"].astype(np.int64)
            features = _features_in(file)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{path} cannot be read as arrays edge_index and y: fetch it again.") from (
            error
        )
    both = np.concatenate([pairs, pairs[::-1]], axis=1)
    return _graph(entry.name, features, labels, both)


def _features_in(file: Mapping[str, Any]) -> NDArray[np.float32]:
    """Dense features of an array file, which has them in compressed rows; none without."""
    if "x_data" not in file:
        return np.empty((len(file["y"]), 0), dtype=np.float32)
    parts = file["x_data"], file["x_indices"], file["x_indptr"]
    rows = sp.csr_array(parts, shape=tuple(file["x_shape"])).toarray()
    return np.asarray(rows, dtype=np.float32)


def _graph(name: str, features: Features, labels: Ints, index: Ints) -> Graph:
    width = len(str(labels.size - 1))
    numbers = np.char.zfill(np.arange(labels.size).astype(np.str_), width)
    if features.size and np.count_nonzero(features) < _SPARSE_BELOW * features.size:
        features = sp.csr_array(features)
    return Graph(
        ids=np.char.add(f"{name}-", numbers),
        features=features,
        labels=labels.astype(np.int64),
        edge_index=index,
        edge_weight=np.ones(index.shape[1]),
        classes=tuple(f"class-{number}" for number in range(int(labels.max()) + 1)),
        feature_names=tuple(f"f{number}" for number in range(features.shape[1])),
        directed=True,
    )
