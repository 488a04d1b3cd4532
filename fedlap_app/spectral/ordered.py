"""Small dense algebra with one fixed order of operations, for decisions that all clients share.

Every client decides from the same sums which directions are new. BLAS and LAPACK add in an order
that depends on the processor, so two machines could decide differently. These functions use only
elementwise IEEE operations and square roots: the same input gives the same bits everywhere.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

AT_ONCE = 2**17
"""Largest number of products that are held in memory before they are added up."""


def product(A: Array, B: Array) -> Array:
    """``A @ B``, added up in the order of the inner index."""
    if 0 < A.size * B.shape[1] <= AT_ONCE:
        return np.asarray(np.add.accumulate(A[:, :, None] * B, axis=1)[:, -1])
    out = np.zeros((A.shape[0], B.shape[1]))
    for k in range(A.shape[1]):
        out += A[:, k, None] * B[k]
    return out


def dot(a: Array, b: Array) -> float:
    """Inner product of two vectors."""
    return float(product(a[None], b[:, None])[0, 0])


def norm(A: Array) -> float:
    """2-norm of ``A`` from above, at most ``n ** (1 / 16)`` too large."""
    top = float(np.abs(A).max(initial=0.0))
    if top == 0.0:
        return 0.0
    power = product((A / top).T, A / top)
    traces = []
    for _ in range(4):
        traces.append(float(np.add.accumulate(np.diag(power))[-1]))
        power = product(power / traces[-1], power / traces[-1])
    square = traces.pop()
    while traces:
        square = traces.pop() * float(np.sqrt(square))
    return top * float(np.sqrt(square))


def inverse_upper(R: Array) -> Array:
    """Inverse of an upper triangular matrix by back substitution."""
    n = R.shape[0]
    inverse = np.eye(n)
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            inverse[i] -= R[i, k] * inverse[k]
        inverse[i] /= R[i, i]
    return inverse


@dataclass(frozen=True, eq=False)
class Factor:
    """What :func:`skipping_cholesky` found.

    Attributes
    ----------
    accepted, skipped
        Column numbers, each in rising order.
    R
        One row per accepted column, all columns: ``R[:, accepted]`` is upper triangular.
    left
        Per column: its squared norm outside the span of the accepted columns before it
        (accepted) or of all accepted columns (skipped).
    """

    accepted: NDArray[np.int64]
    skipped: NDArray[np.int64]
    R: Array
    left: Array


def skipping_cholesky(P: Array, least: Array, room: int) -> Factor:
    """Cholesky factor of the Gram matrix ``P`` that skips what is nearly dependent.

    Parameters
    ----------
    P
        Symmetric matrix of inner products of the candidates.
    least
        Smallest squared norm outside of the earlier columns with which a column is accepted.
    room
        Largest number of columns to accept.
    """
    width = P.shape[0]
    rest = P.copy()
    left = np.zeros(width)
    accepted: list[int] = []
    rows: list[Array] = []
    for j in range(width):
        if len(accepted) == room or not rest[j, j] >= least[j] or rest[j, j] <= 0.0:
            continue
        row = rest[j] / np.sqrt(rest[j, j])
        row[accepted] = 0.0
        left[j] = rest[j, j]
        rest -= row[:, None] * row
        accepted.append(j)
        rows.append(row)
    skipped = np.setdiff1d(np.arange(width), accepted)
    left[skipped] = np.diag(rest)[skipped]
    R = np.array(rows).reshape(len(rows), width)
    return Factor(np.array(accepted, dtype=np.int64), skipped, R, left)
