"""The operators by name, each from a client's rows of the adjacency matrix and the totals."""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.spectral.operators.base import GramOperator, LocalOperator, SplitOperator
from fedlap_app.spectral.totals import Totals

Array = NDArray[np.float64]

KINDS = ("sym", "rw", "regularised", "laplacian", "adjacency", "directed")
UNNORMALISED = ("laplacian", "adjacency", "directed")
"""Their images of vectors grow fast where degrees are large, and sums with them."""


def make_operator(
    kind: str,
    rows: Any,  # noqa: ANN401
    totals: Totals,
    *,
    incoming: Any | None = None,  # noqa: ANN401
    self_loops: float = 1.0,
    regulariser: float | None = None,
) -> LocalOperator:
    """One client's part of the operator ``kind``.

    Parameters
    ----------
    kind
        One of ``KINDS``.
    rows
        CSR matrix (n, n + m): the client's rows of the adjacency matrix, own columns first, then
        those of its external nodes.
    totals
        Totals of the whole graph.
    incoming
        The same rows of the transposed matrix, for ``directed`` (default: ``rows``).
    self_loops
        Weight of the loop that ``sym`` and ``rw`` add at each node, 0 for none (default: 1).
    regulariser
        t of ``regularised`` (default: the mean degree).
    """
    for matrix in (rows, rows if incoming is None else incoming):
        if matrix.shape != rows.shape or rows.shape[1] < rows.shape[0]:
            raise DataError(
                f"Adjacency rows have shape {matrix.shape}; (own nodes, own and external nodes) "
                "was expected: pass all columns, own nodes first."
            )
        if not np.isfinite(matrix.data).all() or (matrix.data < 0).any():
            raise DataError(
                "An edge weight is negative or not finite; positive numbers were expected: "
                "correct the weights."
            )
    if kind == "laplacian":
        return _laplacian(rows, totals)
    if kind == "adjacency":
        return _adjacency(rows, totals)
    if kind in ("sym", "rw"):
        return _normalised(rows, totals, self_loops, random_walk=kind == "rw")
    if kind == "regularised":
        return _regularised(rows, totals, regulariser)
    if kind == "directed":
        return _directed(rows, rows if incoming is None else incoming, totals)
    raise ConfigError(f"The operator is '{kind}'; choose one of {', '.join(KINDS)}.")


def _split(rows: Any) -> tuple[Any, Any, Array]:  # noqa: ANN401
    """Own block, transposed foreign block, and weighted degrees."""
    n = rows.shape[0]
    rows = sp.csr_array(rows, dtype=np.float64)
    degrees = np.asarray(rows.sum(axis=1)).ravel()
    return rows[:, :n].tocsr(), rows[:, n:].T.tocsr(), degrees


def _laplacian(rows: Any, totals: Totals) -> LocalOperator:  # noqa: ANN401
    """D - A, divided by a power of two above twice the largest degree."""
    own, foreign, degrees = _split(rows)
    unit = 2.0 * totals.out_limit
    count = max(totals.nodes, 1)
    mean = totals.mean_degree
    square = (totals.degree_squares + totals.weight_squares) / count
    return SplitOperator(
        local=((sp.diags_array(degrees) - own) / unit).tocsr(),
        owe=foreign / unit,
        back=np.full(len(degrees), -1.0),
        unit=unit,
        center=mean / unit,
        spread=math.sqrt(max(square - mean * mean, 0.0)) / unit,
    )


def _adjacency(rows: Any, totals: Totals) -> LocalOperator:  # noqa: ANN401
    """A, divided by a power of two above the largest degree."""
    own, foreign, degrees = _split(rows)
    unit = totals.out_limit
    return SplitOperator(
        local=own / unit,
        owe=foreign / unit,
        back=np.ones(len(degrees)),
        unit=unit,
        center=0.0,
        spread=math.sqrt(totals.weight_squares / max(totals.nodes, 1)) / unit,
    )


def _normalised(
    rows: Any,  # noqa: ANN401
    totals: Totals,
    loops: float,
    *,
    random_walk: bool,
) -> LocalOperator:
    """I - D^-1/2 A D^-1/2 with loops; the random walk's eigenvectors are D^-1/2 times its own."""
    if not (math.isfinite(loops) and loops >= 0.0):
        raise ConfigError(f"The weight of self loops is {loops}; give 0 or a positive number.")
    own, foreign, degrees = _split(rows)
    root = _inverse_root(degrees + loops)
    out = _exchange_unit(totals.out_limit + loops)
    loop_diagonal = (root > 0.0) - loops * root * root
    own = sp.diags_array(root) @ own @ sp.diags_array(root)
    return SplitOperator(
        local=(sp.diags_array(loop_diagonal) - own).tocsr(),
        owe=(foreign @ sp.diags_array(root / out)).tocsr(),
        back=-out * root,
        unit=1.0,
        center=1.0,
        spread=0.5,
        scaling=root if random_walk else None,
    )


def _regularised(rows: Any, totals: Totals, t: float | None) -> LocalOperator:  # noqa: ANN401
    """I - D_t^-1/2 (A + t/n 11') D_t^-1/2 with D_t = D + t."""
    t = totals.mean_degree if t is None else t
    if not (math.isfinite(t) and t >= 0.0):
        raise ConfigError(f"The regulariser is {t}; give 0 or a positive number.")
    own, foreign, degrees = _split(rows)
    root = _inverse_root(degrees + t)
    out = _exchange_unit(totals.out_limit + t)
    own = sp.diags_array(root) @ own @ sp.diags_array(root)
    return SplitOperator(
        local=(sp.diags_array((root > 0.0).astype(np.float64)) - own).tocsr(),
        owe=(foreign @ sp.diags_array(root / out)).tocsr(),
        back=-out * root,
        unit=1.0,
        center=1.0,
        spread=0.5,
        spike=math.sqrt(t / max(totals.nodes, 1)) * root,
    )


def _directed(rows: Any, incoming: Any, totals: Totals) -> LocalOperator:  # noqa: ANN401
    """A A', with A divided by a power of two above its norm."""
    own, out_foreign, _ = _split(rows)
    _, in_foreign, _ = _split(incoming)
    root = _root_limit(totals.out_limit * totals.in_limit)
    mean = totals.weight_squares / max(totals.nodes, 1) / root**2
    return GramOperator(
        own=own / root,
        own_transposed=(own.T / root).tocsr(),
        owe=(out_foreign / root, in_foreign / root),
        unit=root * root,
        center=mean,
        spread=mean,
    )


def _inverse_root(degrees: Array) -> Array:
    """D^-1/2, zero for nodes without an edge."""
    with np.errstate(divide="ignore"):
        return np.where(degrees > 0.0, 1.0 / np.sqrt(degrees), 0.0)


def _root_limit(limit: float) -> float:
    """Power of two at or above the square root of ``limit``."""
    return 2.0 ** math.ceil(math.log2(limit) / 2.0)


def _exchange_unit(limit: float) -> float:
    """Divisor of normalised products: they reach the root of the largest degree.

    Values up to 64 fit every sum back end and are left alone, because to divide them would make
    the noise of a sum larger by as much.
    """
    root = _root_limit(limit)
    return root / min(max(root, 1.0), 64.0)
