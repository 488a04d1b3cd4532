"""How much of a graph some vectors keep: the paper's pictures of truncated matrices, with numbers.

Of S = D^-1/2 (A + I) D^-1/2 the r largest eigenpairs give U Lambda U', and r Krylov vectors Q give
Q T Q' with T = Q' S Q. Both are projections, so that the squared error is |S|^2 - |Lambda|^2 and
|S|^2 - |T|^2, without a dense matrix of the nodes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from fedlap_app.api.organisations import load
from fedlap_app.graphs.graph import join
from fedlap_app.seeds import seed_of
from fedlap_app.studies.report_files import save_chart, write_csv
from fedlap_app.studies.tables.experiments import RANKS
from fedlap_app.studies.true_spectrum import krylov

PIXELS = 240
SHOWN = max(RANKS)
Array = NDArray[np.float64]


def bench_truncation(
    datasets: Sequence[str], *, out: Path, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Measure and draw; writes truncation.csv, .png and .svg.

    Parameters
    ----------
    datasets
        Whose graphs.
    out
        Folder of the files.
    seed
        Of the vectors that the iteration starts from.
    say
        Is told of every graph.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows, pictures = [], []
    for dataset in datasets:
        whole = join(list(load(dataset, clients=2, partition="random")))
        order = np.argsort(whole.labels, kind="stable")
        S = normalised(whole.symmetric_adjacency())[order][:, order]
        values, U = eigsh(S, k=SHOWN, which="LA", v0=_start(S.shape[0], seed)[:, 0])
        U = U[:, np.argsort(-values)]
        Q = krylov(S, _start(S.shape[0], seed), SHOWN)
        for r in RANKS:
            errors = {"eigenvectors": lost(S, U[:, :r]), "krylov": lost(S, Q[:, :r])}
            rows.append({"dataset": dataset, "r": r, **errors})
        pictures.append((dataset, [_binned(S), *(_picture(S, each) for each in (U, Q))]))
        say(f"{dataset}: {SHOWN} vectors lose {rows[-1]['eigenvectors']:.3f} of the matrix "
            f"(eigenvectors), {rows[-1]['krylov']:.3f} (Krylov)")  # fmt: skip
    report = {"experiment": "truncation", "rows": rows}
    write_csv(report, out / "truncation.csv")
    _draw(pictures, out)
    return report


def normalised(adjacency: Any) -> sp.csr_array:  # noqa: ANN401 - any sparse matrix
    """D^-1/2 (A + I) D^-1/2."""
    looped = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0]))
    root = sp.diags_array(1.0 / np.sqrt(np.asarray(looped.sum(axis=1)).ravel()))
    return sp.csr_array(root @ looped @ root)


def lost(S: sp.csr_array, basis: Array) -> float:
    """Relative Frobenius error of the projection on orthonormal columns."""
    kept = basis.T @ (S @ basis)
    squares = float(S.multiply(S).sum())
    return float(np.sqrt(max(squares - np.square(kept).sum(), 0.0) / squares))


def _start(nodes: int, seed: int) -> Array:
    return np.random.default_rng(seed_of(seed, "truncation")).standard_normal((nodes, 1))


def _groups(nodes: int) -> sp.csr_array:
    """Means over runs of nodes, one for each pixel."""
    place = np.arange(nodes) * PIXELS // nodes
    counts = np.bincount(place, minlength=PIXELS)
    entries = 1.0 / np.maximum(counts[place], 1)
    return sp.csr_array((entries, (place, np.arange(nodes))), shape=(PIXELS, nodes))


def _binned(S: sp.csr_array) -> Array:
    groups = _groups(S.shape[0])
    return np.asarray((groups @ S @ groups.T).toarray())


def _picture(S: sp.csr_array, basis: Array) -> Array:
    grouped = _groups(S.shape[0]) @ basis
    return np.asarray(grouped @ (basis.T @ (S @ basis)) @ grouped.T)


def _draw(pictures: Sequence[tuple[str, Sequence[Array]]], out: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.1 * len(pictures)), layout="constrained")
    places = figure.subplots(len(pictures), 3, squeeze=False)
    titles = ("all of the graph", f"{SHOWN} eigenvectors", f"{SHOWN} Krylov vectors")
    for line, (dataset, images) in zip(places, pictures, strict=True):
        top = np.quantile(images[0], 0.99)
        for axes, title, image in zip(line, titles, images, strict=True):
            axes.imshow(image, cmap="Greys", vmin=0.0, vmax=top or None)
            axes.set_title(f"{dataset}: {title}", fontsize=8)
            axes.set_axis_off()
    for suffix in (".png", ".svg"):
        save_chart(figure, out / f"truncation{suffix}")
