"""The usual benchmark graphs, through torch_geometric's own classes or from a file.

Raw files come from the folder that ``FEDLAP_DATA`` names, which is never written to: they are
linked into the cache, where torch_geometric puts its processed files. What it gives is kept in our
own binary form, so that later processes load a graph without importing torch.
"""

import contextlib
import io
import os
import socket
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app import places
from fedlap_app.errors import DataError
from fedlap_app.graphs.cache import locked
from fedlap_app.graphs.graph import Graph

_SPARSE_BELOW = 0.25  # density under which the features are kept in CSR form
_PROBE_SECONDS = 5.0


@dataclass(frozen=True)
class Source:
    """Where a benchmark lies below ``FEDLAP_DATA`` and who reads it."""

    raw: str
    open: Callable[[Path], Any]


def _planetoid(name: str) -> Source:
    def read(root: Path) -> Any:  # noqa: ANN401 - torch_geometric has no types
        from torch_geometric.datasets import Planetoid

        return Planetoid(str(root), name)

    return Source(f"{name}/raw", read)


def _chameleon(root: Path) -> Any:  # noqa: ANN401 - torch_geometric has no types
    from torch_geometric.datasets import WikipediaNetwork

    return WikipediaNetwork(str(root), "chameleon", geom_gcn_preprocess=True)


def _photo(root: Path) -> Any:  # noqa: ANN401 - torch_geometric has no types
    from torch_geometric.datasets import Amazon

    return Amazon(str(root), "Photo")


SOURCES = {
    "cora": _planetoid("Cora"),
    "citeseer": _planetoid("CiteSeer"),
    "pubmed": _planetoid("PubMed"),
    "chameleon": Source("chameleon/geom_gcn/raw", _chameleon),
    "photo": Source("Photo/raw", _photo),
}
ARXIV = "ogbn-arxiv/arxiv_graph.npz"


def data_folder() -> Path | None:
    """Folder that ``FEDLAP_DATA`` names, if there is one."""
    folder = os.environ.get("FEDLAP_DATA")
    return Path(folder) if folder and Path(folder).is_dir() else None


def is_here(name: str) -> bool:
    """Whether a benchmark can be loaded without a download."""
    folder = data_folder()
    wanted = SOURCES[name].raw if name in SOURCES else ARXIV
    return _kept(name).exists() or (folder is not None and (folder / wanted).exists())


def load_benchmark(name: str, *, directed: bool) -> Graph:
    """A benchmark graph, without self loops and duplicates, symmetric unless ``directed``."""
    kept = _kept(name)
    with locked(kept.parent / f".{name}.lock"):
        if not kept.exists():
            _fetch(name).save(kept)
    try:
        graph = Graph.load(kept)
    except DataError:
        kept.unlink(missing_ok=True)
        return load_benchmark(name, directed=directed)
    return graph if directed else _undirected(graph)


def _kept(name: str) -> Path:
    return places.cache_dir() / "graphs" / f"{name}.graph"


def _undirected(graph: Graph) -> Graph:
    return Graph(
        ids=graph.ids,
        features=graph.features,
        labels=graph.labels,
        edge_index=graph.edge_index,
        edge_weight=graph.edge_weight,
        classes=graph.classes,
        feature_names=graph.feature_names,
    )


def _fetch(name: str) -> Graph:
    """Read a benchmark with its direction, as its source has it."""
    if name not in SOURCES:
        return _arxiv()
    root = places.cache_dir() / "torch_geometric"
    source = SOURCES[name]
    linked = _link_raw(source, root)
    quiet = io.StringIO()
    try:
        if not linked:
            _require_network(name)
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stderr(quiet),
            contextlib.redirect_stdout(quiet),
        ):
            warnings.simplefilter("ignore")
            data = source.open(root)[0]
    except DataError:
        raise
    except Exception as error:  # the classes raise whatever their many readers raise
        what = "its raw files cannot be read" if linked else "it cannot be downloaded"
        raise DataError(
            f"The data set {name} is not usable, {what} ({type(error).__name__}): set FEDLAP_DATA "
            f"to a folder with complete files in {source.raw}."
        ) from None
    return _graph(name, data.x.numpy(), data.y.numpy(), data.edge_index.numpy())


def _link_raw(source: Source, root: Path) -> bool:
    """Link the raw files into the cache; False when there are none."""
    folder = data_folder()
    if folder is None or not (folder / source.raw).is_dir():
        return False
    target = root / source.raw
    target.mkdir(parents=True, exist_ok=True)
    for file in (folder / source.raw).iterdir():
        link = target / file.name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(file.absolute())
    return True


def _require_network(name: str) -> None:
    """Find out quickly that there is no network, where a download would try for minutes."""
    if os.environ.get("https_proxy") or os.environ.get("HTTPS_PROXY"):
        return
    host = urlparse("https://github.com").hostname
    try:
        socket.create_connection((host, 443), timeout=_PROBE_SECONDS).close()
    except OSError:
        raise DataError(
            f"The data set {name} is not here and there is no network to download it: set "
            f"FEDLAP_DATA to a folder that has its files in {SOURCES[name].raw}, or take the data "
            "set banks or digits, which need no files."
        ) from None


def _arxiv() -> Graph:
    """The citation graph of ogbn-arxiv: structure and labels, no feature columns."""
    folder = data_folder()
    if folder is None or not (folder / ARXIV).is_file():
        raise DataError(
            f"The data set ogbn-arxiv is not here: set FEDLAP_DATA to a folder that has {ARXIV}."
        )
    try:
        with np.load(folder / ARXIV, allow_pickle=False) as file:
            index, labels = file["edge_index"], file["y"].reshape(-1)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{folder / ARXIV} cannot be read ({error}): fetch it again.") from None
    features = np.zeros((labels.size, 0), dtype=np.float32)
    return _graph("arxiv", features, labels, index)


def _graph(name: str, features: NDArray[Any], labels: NDArray[Any], index: NDArray[Any]) -> Graph:
    """A graph with made-up names; CiteSeer's 15 nodes without a label keep the class they get."""
    count, columns = features.shape
    dense = np.ascontiguousarray(features, dtype=np.float32)
    few = bool(columns) and np.count_nonzero(dense) < _SPARSE_BELOW * dense.size
    digits = len(str(count - 1))
    numbers = np.char.zfill(np.arange(count).astype(np.str_), digits)
    return Graph(
        ids=np.char.add(f"{name}-", numbers),
        features=sp.csr_array(dense) if few else dense,
        labels=labels.astype(np.int64),
        edge_index=index.astype(np.int64),
        edge_weight=np.ones(index.shape[1]),
        classes=tuple(f"class-{number}" for number in range(int(labels.max()) + 1)),
        feature_names=tuple(f"f{number}" for number in range(columns)),
        directed=True,
    )
