"""Exact leverages of a basis: how much of the M exchanged equations falls on each node.

alpha_v = Q_v Sigma^-1 Q_v' with Sigma = p (1 - p) Q'Q (theorem `thm:posterior`) is the leverage of
row v of Q, divided by p (1 - p). Leverages sum to the rank of Q, so that the mean of alpha_v is
rank / (n_1 p (1 - p)) on every graph, whether the vectors are delocalised or not.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.leakage import RECALLS, check_density
from fedlap_app.sums.programs import Krylov

Array = NDArray[np.float64]

_THRESHOLDS = 401
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

    def largest_sum(self, density: float) -> float:
        """Largest P + R over the thresholds with a recall within `RECALLS`, over all nodes v."""
        alpha = self.alpha[self.alpha > 0.0]
        if not alpha.size:
            return RECALLS[1] + density  # nothing is told apart

        def rate(thresholds: Array, sign: float) -> Array:
            """Share of pairs above each threshold, of edges (1) or of others (-1)."""
            far = (thresholds[:, None] - sign * alpha / 2.0) / np.sqrt(alpha)
            return np.asarray(ndtr(-far).mean(axis=1))

        ends = [_threshold(lambda gamma: rate(gamma, 1.0), recall) for recall in RECALLS]
        thresholds = np.linspace(ends[1], ends[0], _THRESHOLDS)
        recalls, alarms = rate(thresholds, 1.0), rate(thresholds, -1.0)
        hits = density * recalls
        return float((hits / (hits + (1.0 - density) * alarms) + recalls).max())


def _threshold(recall_of: Callable[[Array], Array], recall: float) -> float:
    """Threshold with a given recall, which falls as the threshold rises."""
    low, high = -1.0, 1.0
    while recall_of(np.array([low]))[0] < recall:
        low *= 2.0
    while recall_of(np.array([high]))[0] > recall:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if recall_of(np.array([middle]))[0] > recall:
            low = middle
        else:
            high = middle
    return low


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


def row_scaling(program: Krylov, subgraph: Subgraph) -> Array:
    """(n_i,) from the rows that an organisation keeps to those in A Q, but for one factor.

    For `sym` it is (d_v + loops)^-1/2, for `regularised` (d_v + t)^-1/2; kept rows of `rw` have
    it already. Where t is the mean degree of the whole graph, the organisation's own stands for it.
    """
    degrees = subgraph.degrees()
    if program.operator not in ("sym", "regularised"):
        return np.ones_like(degrees)
    mean = float(degrees.mean())
    shift = mean if program.shift is None else program.shift
    added = program.loops if program.operator == "sym" else shift
    total = degrees + added
    roots: Array = np.divide(1.0, np.sqrt(total), out=np.zeros_like(total), where=total > 0.0)
    return roots
