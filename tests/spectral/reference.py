"""The iteration on the whole matrix, as textbooks have it, to compare with."""

import numpy as np
import scipy.linalg

from fedlap_app.studies.true_spectrum import capture, eigenspace, in_order, whole_operator

__all__ = ["capture", "eigenspace", "krylov", "rayleigh_ritz", "whole_operator"]


def krylov(L, start, vectors):
    """Orthonormal basis of the block Krylov space of ``start``, by Householder QR, twice."""
    Q = np.linalg.qr(start[:, :vectors])[0]
    block = Q
    while Q.shape[1] < vectors:
        block = (L @ block)[:, : vectors - Q.shape[1]]
        for _ in range(2):
            block = block - Q @ (Q.T @ block)
            block, R = np.linalg.qr(block)
            if np.abs(np.diag(R)).min() < 1e-10 * np.abs(R).max():
                raise ValueError(
                    f"The Krylov space ends after {Q.shape[1]} vectors; {vectors} were wanted: "
                    "compare fewer."
                )
        Q = np.hstack([Q, block])
    return Q


def rayleigh_ritz(L, Q, rank, keep):
    """Kept Ritz values and vectors of ``L`` on the span of ``Q``."""
    T = Q.T @ (L @ Q)
    values, Y = scipy.linalg.eigh((T + T.T) / 2)
    order = in_order(values, keep)[:rank]
    return values[order], Q @ Y[:, order]
