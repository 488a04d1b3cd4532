"""The iteration on the whole matrix, as textbooks have it, to compare with."""

import scipy.linalg

from fedlap_app.studies.true_spectrum import capture, eigenspace, in_order, krylov, whole_operator

__all__ = ["capture", "eigenspace", "krylov", "rayleigh_ritz", "whole_operator"]


def rayleigh_ritz(L, Q, rank, keep):
    """Kept Ritz values and vectors of ``L`` on the span of ``Q``."""
    T = Q.T @ (L @ Q)
    values, Y = scipy.linalg.eigh((T + T.T) / 2)
    order = in_order(values, keep)[:rank]
    return values[order], Q @ Y[:, order]
