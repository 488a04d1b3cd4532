"""Eigenvectors of the whole graph, to compare with; only for those who hold all of it."""

import math
from itertools import accumulate
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.spectral.ritz import KEEP

Array = NDArray[np.float64]

DENSE = 3000
"""Largest connected component whose eigenvectors are computed by a dense solver."""


def whole_operator(
    kind: str,
    A: Any,  # noqa: ANN401
    *,
    self_loops: float = 1.0,
    regulariser: float | None = None,
) -> Any:  # noqa: ANN401
    """The operator ``kind`` of the adjacency matrix ``A`` as a scipy ``LinearOperator``.

    ``rw`` gives the symmetric matrix that it is computed by.
    """
    A = sp.csr_array(A, dtype=np.float64)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    if kind == "laplacian":
        return scipy.sparse.linalg.aslinearoperator((sp.diags_array(degrees) - A).tocsr())
    if kind == "adjacency":
        return scipy.sparse.linalg.aslinearoperator(A)
    if kind == "directed":
        return scipy.sparse.linalg.aslinearoperator((A @ A.T).tocsr())
    if kind not in ("sym", "rw", "regularised"):
        raise ConfigError(f"The operator is '{kind}'; it is not one that can be compared.")
    t = 0.0
    if kind == "regularised":
        t = float(degrees.mean()) if regulariser is None else regulariser
    else:
        A = A + self_loops * sp.eye_array(len(degrees))
        degrees = degrees + self_loops
    root = np.zeros(len(degrees))
    root[degrees + t > 0] = (degrees + t)[degrees + t > 0] ** -0.5
    scaled = sp.diags_array(root) @ A @ sp.diags_array(root)
    L = (sp.diags_array((root > 0).astype(np.float64)) - scaled).tocsr()
    spike = math.sqrt(t / len(degrees)) * root[:, None]

    def multiply(X: Array) -> Array:
        X = X.reshape(len(degrees), -1)
        return np.asarray(L @ X - spike @ (spike.T @ X))

    return scipy.sparse.linalg.LinearOperator(
        L.shape, matvec=multiply, matmat=multiply, dtype=np.float64
    )


def eigenspace(
    kind: str,
    A: Any,  # noqa: ANN401
    rank: int,
    keep: str = "smallest",
    *,
    tolerance: float = 1e-8,
    **options: Any,  # noqa: ANN401
) -> tuple[Array, Array]:
    """True eigenpairs up to the ``rank``-th eigenvalue and ``tolerance`` beyond it.

    Connected components are solved one by one, so that equal eigenvalues of different components
    (the many zeros of a disconnected graph) are all found.

    Returns
    -------
    tuple
        Eigenvalues (k,) in the order of ``keep`` and eigenvectors (n, k), k at least ``rank``
        when the graph has so many nodes.
    """
    in_order(np.zeros(0), keep)
    labels = np.zeros(A.shape[0], dtype=np.int64)
    if kind != "regularised":
        labels = sp.csgraph.connected_components(A, directed=True, connection="weak")[1]
    extra = 8
    while True:
        pieces = _component_pairs(kind, A, labels, rank + extra, keep, options)
        values = np.concatenate([piece[1] for piece in pieces])
        order = in_order(values, keep)
        limit = values[order[min(rank, len(order)) - 1]]
        distance = np.abs(np.abs(values) - abs(limit) if keep == "magnitude" else values - limit)
        rank_of = np.argsort(order)
        chosen = (rank_of < rank) | (distance <= tolerance)
        cut = any(
            len(piece[1]) < len(piece[0]) and chosen[start : start + len(piece[1])].all()
            for piece, start in zip(pieces, _starts(pieces), strict=True)
        )
        if not cut:
            break
        extra *= 4
    return _collect(pieces, values, [i for i in order if chosen[i]], A.shape[0])


def capture(U: Array, V: Array) -> float:
    """Mean squared cosine of the columns of ``U`` to the span of the orthonormal ``V``."""
    return float(np.sum((V.T @ U) ** 2) / np.sum(U**2))


def krylov(L: Any, start: Array, vectors: int) -> Array:  # noqa: ANN401
    """Orthonormal basis of the block Krylov space of ``start``, by Householder QR, twice."""
    Q = np.linalg.qr(start[:, :vectors])[0]
    block = Q
    while Q.shape[1] < vectors:
        block = (L @ block)[:, : vectors - Q.shape[1]]
        for _ in range(2):
            block = block - Q @ (Q.T @ block)
            block, R = np.linalg.qr(block)
            if np.abs(np.diag(R)).min() < 1e-10 * np.abs(R).max():
                raise RunError(
                    f"The Krylov space ends after {Q.shape[1]} vectors; {vectors} were wanted: "
                    "compare fewer."
                )
        Q = np.hstack([Q, block])
    return Q


def in_order(values: Array, keep: str) -> NDArray[np.int64]:
    """Which eigenvalues are kept first."""
    if keep not in KEEP:
        raise ConfigError(f"keep is '{keep}'; choose one of {', '.join(KEEP)}.")
    key = {"smallest": values, "largest": -values, "magnitude": -np.abs(values)}[keep]
    return np.argsort(key, kind="stable")


Piece = tuple[NDArray[np.int64], Array, Array]


def _component_pairs(
    kind: str,
    A: Any,  # noqa: ANN401
    labels: NDArray[np.int64],
    count: int,
    keep: str,
    options: dict[str, Any],
) -> list[Piece]:
    """Nodes, eigenvalues and eigenvectors of every component."""
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    A = sp.csr_array(A)
    pieces = []
    for nodes in groups:
        L = whole_operator(kind, A[nodes][:, nodes], **options)
        if len(nodes) <= max(DENSE, 2 * count):
            dense = L @ np.eye(len(nodes))
            values, V = scipy.linalg.eigh((dense + dense.T) / 2)
            pieces.append((nodes, values, V))
        else:
            pieces.append((nodes, *_extreme_pairs(kind, L, count, keep)))
    return pieces


def _extreme_pairs(kind: str, L: Any, count: int, keep: str) -> tuple[Array, Array]:  # noqa: ANN401
    """Eigenpairs at one end of the spectrum of a large matrix."""
    n = L.shape[0]
    arguments: dict[str, Any] = {
        "k": count,
        "ncv": min(3 * count, n),
        "tol": 1e-10,
        "v0": np.random.default_rng(0).standard_normal(n),
    }
    if kind == "laplacian" and keep == "smallest":
        # The low end of D - A is crowded compared with its norm: invert it.
        arguments |= {"sigma": -1e-3, "which": "LM"}
        L = sp.csc_array(L.A)
    else:
        arguments["which"] = {"smallest": "SA", "largest": "LA", "magnitude": "LM"}[keep]
    try:
        values, V = scipy.sparse.linalg.eigsh(L, **arguments)
    except scipy.sparse.linalg.ArpackNoConvergence:
        raise RunError(
            f"The true eigenvectors of {n} nodes did not converge: compare a smaller graph or rank."
        ) from None
    return values, V


def _starts(pieces: list[Piece]) -> list[int]:
    """Position of each component's first eigenvalue among all."""
    return list(accumulate((len(piece[1]) for piece in pieces[:-1]), initial=0))


def _collect(pieces: list[Piece], values: Array, chosen: list[int], n: int) -> tuple[Array, Array]:
    """Chosen eigenpairs with the vectors on all nodes."""
    V = np.zeros((n, len(chosen)))
    position = {index: column for column, index in enumerate(chosen)}
    for (nodes, own, vectors), start in zip(pieces, _starts(pieces), strict=True):
        for j in range(len(own)):
            if start + j in position:
                V[nodes, position[start + j]] = vectors[:, j]
    return values[chosen], V
