"""The small eigenproblem at the end of every solver: summed, solved by one client, shared.

It is the Rayleigh-Ritz problem of the operator on the span of Q, with the summed Q'Q, so that the
kept vectors are orthonormal even where Q is not quite. Two machines may rotate near-degenerate
eigenvectors differently, so one client calls :func:`solve_small` and gives its result to the
others; each one then has its rows of the basis from ``Solver.finish``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, RunError

Array = NDArray[np.float64]

KEEP = ("smallest", "largest", "magnitude")


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """Sums over all clients after the last step, with Z = L Q.

    Attributes
    ----------
    gram
        Q'Q.
    ritz
        Symmetric part of Q'Z.
    squares
        Z'Z.
    unit
        What the operator was divided by.
    noise
        Absolute error of one summed value.
    """

    gram: Array
    ritz: Array
    squares: Array
    unit: float
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class SmallSolution:
    """Kept Ritz pairs: ``Y`` (vectors exchanged, kept) with ``U = Q Y``, and the eigenvalues."""

    Y: Array
    eigenvalues: Array


def solve_small(problem: SmallProblem, rank: int, keep: str = "smallest") -> SmallSolution:
    """Ritz pairs of the operator on the span of Q.

    Parameters
    ----------
    problem
        The sums.
    rank
        Pairs to keep; fewer are returned when an invariant subspace had fewer dimensions.
    keep
        ``smallest`` eigenvalues in rising order, ``largest`` in falling order, or largest
        ``magnitude`` first (default: ``smallest``).
    """
    if keep not in KEEP:
        raise ConfigError(f"keep is '{keep}'; choose one of {', '.join(KEEP)}.")
    if rank < 1:
        raise ConfigError(f"rank is {rank}; give a whole number of at least 1.")
    whiten = _whitening(problem)
    values, Y = np.linalg.eigh(whiten.T @ problem.ritz @ whiten)
    Y = whiten @ Y
    order = {
        "smallest": np.arange(len(values)),
        "largest": np.arange(len(values))[::-1],
        "magnitude": np.argsort(-np.abs(values), kind="stable"),
    }[keep][:rank]
    Y = Y[:, order]
    signs = np.sign(Y[np.abs(Y).argmax(axis=0), np.arange(Y.shape[1])])
    return SmallSolution(np.ascontiguousarray(Y * signs), values[order] * problem.unit)


def _whitening(problem: SmallProblem) -> Array:
    """Coefficients X of an orthonormal basis Q X; directions that Q hardly has are left out.

    Q'Q is close to I after ``block-lanczos`` and ``dcgs2``; the paper's Gram-Schmidt may lose
    whole directions.
    """
    shares, vectors = np.linalg.eigh(problem.gram)
    kept = shares > max(1e-10, 1e7 * problem.noise)
    if not kept.any():
        raise RunError(
            "No exchanged vector is larger than the noise of the sums; vectors of norm one were "
            "expected: start a new job."
        )
    return np.asarray(vectors[:, kept] / np.sqrt(shares[kept]))


def pack_upper(A: Array) -> Array:
    """Upper triangle of a symmetric matrix, row by row."""
    return A[np.triu_indices(len(A))]


def unpack_upper(values: Array, size: int) -> Array:
    """Symmetric matrix of an upper triangle."""
    A = np.zeros((size, size))
    A[np.triu_indices(size)] = values
    return A + np.triu(A, 1).T
