"""Exact leverages of a basis: how much of the M exchanged equations falls on each node.

alpha_v = Q_v Sigma^-1 Q_v' with Sigma = p (1 - p) Q'Q (theorem `thm:posterior`) is the leverage of
row v of Q, divided by p (1 - p). Leverages sum to the rank of Q, so that the mean of alpha_v is
rank / (n_1 p (1 - p)) on every graph, whether the vectors are delocalised or not.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fedlap_app.privacy.leakage import check_density

Array = NDArray[np.float64]

_NEGLIGIBLE = 1e-10
"""Directions below this share of the largest one are taken for none."""


def orthonormal_rows(rows: Array) -> Array:
    """Rows of an orthonormal basis of the space that the columns of `rows` span, (n_1, rank).

    The test of the theorem does not change when the columns are combined with each other.
    """
    left, sizes, _ = np.linalg.svd(rows, full_matrices=False)
    kept = sizes > _NEGLIGIBLE * sizes.max(initial=0.0)
    return np.ascontiguousarray(left[:, kept])


@dataclass(frozen=True, eq=False)
class Leverages:
    """alpha_v of every node of a target.

    Attributes
    ----------
    alpha
        (n_1,) alpha_v.
    rank
        Rank of the rows of the basis.
    """

    alpha: Array
    rank: int

    @property
    def mean(self) -> float:
        """Mean, rank / (n_1 p (1 - p))."""
        return float(self.alpha.mean())

    @property
    def p99(self) -> float:
        """99th percentile."""
        return float(np.quantile(self.alpha, 0.99))

    @property
    def largest(self) -> float:
        """Largest."""
        return float(self.alpha.max())

    @property
    def auc(self) -> float:
        """Mean over all nodes v of the AUC on pairs (u, v), Phi(sqrt(alpha_v / 2))."""
        return float(ndtr(np.sqrt(self.alpha / 2.0)).mean())


def leverages_of(rows: Array, density: float) -> Leverages:
    """alpha_v of the rows of a basis at a target's nodes.

    Parameters
    ----------
    rows
        (n_1, M) the target's rows of the vectors exchanged; they need not be orthonormal.
    density
        Probability p of an edge.
    """
    check_density(density)
    basis = orthonormal_rows(rows)
    spread = np.einsum("ij,ij->i", basis, basis)
    return Leverages(spread / (density * (1.0 - density)), basis.shape[1])
