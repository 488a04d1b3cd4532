"""The paper's worst-case attack on an edge, in closed form.

The attacker knows the rows of M vectors at the target's nodes, their images, all degrees and the
edge density p, and compares the log-likelihood ratio (LLR) of "u and v are connected" with a
threshold gamma. For many nodes (theorem `thm:posterior`)

    H1, an edge:  LLR ~ N(+alpha / 2, alpha)        H0, none:  LLR ~ N(-alpha / 2, alpha)

with alpha_v = Q_v Sigma^-1 Q_v' and Sigma = p (1 - p) Q'Q. Everything follows from alpha and p.

Conventions
-----------
M counts the vectors **exchanged**, not the r that are kept: every one of them is an equation.
n is the number of nodes that share the M units of leverage, and p the density that the attacker
assumes. The figures of this project take the whole graph for both: n all nodes and
p = 2 E / (n (n - 1)) over pairs, E counted once and self loops left out (`Density.true_p`). Against
a target that holds n_1 nodes the mean of alpha_v is M / (n_1 p (1 - p)): pass n_1 as n, as
`fedlap audit` does.

P + R tends to 1 + p as the threshold falls (all pairs are called connected) and to 1 as it rises,
whatever M is. So thresholds are taken between a recall of 0.05 and one of 0.95, which leaves the
two trivial answers out. The largest M with P + R at most 1 is then 31 / 23 / 46 / 150 / 210 on
Cora / CiteSeer / PubMed / Chameleon / Photo, and with the paper's p (`Density.paper_p`)
165 / 369 / 84 on Chameleon (directed) / Photo / PubMed, where the paper reads 175 / 350 / 80 off
its plots.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri

from fedlap_app.errors import ConfigError

RECALLS = (0.05, 0.95)
"""Recalls between which thresholds are taken."""

_STEPS = 3601
Values = NDArray[np.float64]


def alpha_of(vectors: float, nodes: int, density: float) -> float:
    """Mean of alpha_v, M / (n p (1 - p)), equation `eq:alpha_approx`.

    The paper's approximation assumes delocalised vectors; the mean over all nodes is exact, as
    the leverages of M orthonormal vectors sum to M.

    Parameters
    ----------
    vectors
        Vectors exchanged, M.
    nodes
        Nodes n over which they spread.
    density
        Probability p of an edge.
    """
    check_density(density)
    if vectors < 0 or nodes < 1:
        raise ConfigError(
            f"{vectors} vectors over {nodes} nodes have no leakage: give no fewer than 0 vectors "
            "and a node or more"
        )
    return vectors / (nodes * density * (1.0 - density))


def kl_of(alpha: float) -> float:
    """KL divergence of the LLR under H1 from that under H0, alpha / 2 in nats, `eq:KL`."""
    return alpha / 2.0


def auc_of(alpha: float) -> float:
    """Chance that an edge has a larger LLR than a pair without one, Phi(sqrt(alpha / 2)).

    The difference of the two LLRs is N(alpha, 2 alpha).
    """
    return float(ndtr(math.sqrt(alpha / 2.0)))


def worst_case_auc(vectors: int, nodes: int, density: float) -> float:
    """AUC of the paper's attacker on the edges among the nodes of one organisation.

    Parameters
    ----------
    vectors
        Vectors exchanged, M, over all jobs since the graph last changed.
    nodes
        Nodes of the organisation under attack, n_1; more vectors than these say nothing new.
    density
        Share p of the pairs of its nodes that are connected.
    """
    return auc_of(alpha_of(min(vectors, nodes), nodes, density))


def largest_vectors_auc(nodes: int, density: float, bound: float) -> int:
    """The largest M, at most n, with an AUC of at most `bound`."""
    if not 0.5 <= bound <= 1.0:
        raise ConfigError(
            f"an AUC bound of {bound:g} is not between 0.5 (guessing) and 1 (every edge is found): "
            "give for example 0.75"
        )
    if bound == 1.0:
        return nodes
    # Phi(sqrt(alpha / 2)) = bound, solved for M; then rounding is put right.
    most = 2.0 * float(ndtri(bound)) ** 2 * nodes * density * (1.0 - density)
    fits = min(nodes, int(most) + 1)
    while fits and worst_case_auc(fits, nodes, density) > bound:
        fits -= 1
    return fits


def recall_at(false_alarms: float, alpha: float) -> float:
    """TPR at an FPR, Phi(Phi^-1(FPR) + sqrt(alpha))."""
    return float(ndtr(ndtri(false_alarms) + math.sqrt(alpha)))


def best_f1(alpha: float, density: float) -> float:
    """Largest harmonic mean of precision and recall over all thresholds."""
    recalls = np.linspace(0.0, 1.0, _STEPS + 1)[1:]
    precisions = precision_at(recalls, alpha, density)
    return float((2.0 * precisions * recalls / (precisions + recalls)).max())


def recall_of(threshold: ArrayLike, alpha: float) -> Values:
    """Share of the edges that are found (TPR) at thresholds gamma, `eq:TPR`; alpha > 0."""
    return _tail((np.asarray(threshold) - alpha / 2.0) / math.sqrt(alpha))


def false_alarm_of(threshold: ArrayLike, alpha: float) -> Values:
    """Share of the other pairs that are called edges (FPR) at thresholds, `eq:FPR`; alpha > 0."""
    return _tail((np.asarray(threshold) + alpha / 2.0) / math.sqrt(alpha))


def precision_at(recall: ArrayLike, alpha: float, density: float) -> Values:
    """Share of the called pairs that are edges, p TPR / (p TPR + (1 - p) FPR), by the recall."""
    check_density(density)
    found = np.asarray(recall, dtype=np.float64)
    # FPR and TPR underflow for large alpha; their ratio is what counts.
    ratio = np.exp(log_ndtr(ndtri(found) - math.sqrt(alpha)) - np.log(found))
    return np.asarray(1.0 / (1.0 + (1.0 - density) / density * ratio), dtype=np.float64)


def largest_sum(alpha: float, density: float) -> float:
    """Largest P + R over the thresholds with a recall within `RECALLS`."""
    recalls = np.linspace(*RECALLS, _STEPS)
    return float((precision_at(recalls, alpha, density) + recalls).max())


def largest_p_plus_r(vectors: float, nodes: int, density: float) -> float:
    """Largest P + R against M vectors over n nodes at density p; above 1 edges are found."""
    return largest_sum(alpha_of(vectors, nodes, density), density)


def largest_vectors(nodes: int, density: float) -> int:
    """The largest M, at most n, with P + R at most 1; 0 where even one vector is too many.

    At each recall the precision grows with M, so the sum does.
    """
    fits, over = 0, nodes + 1
    while over - fits > 1:
        middle = (fits + over) // 2
        if largest_p_plus_r(middle, nodes, density) <= 1.0:
            fits = middle
        else:
            over = middle
    return fits


def _tail(standardised: Values) -> Values:
    return np.asarray(np.exp(log_ndtr(-standardised)), dtype=np.float64)


def check_density(density: float) -> None:
    """Refuse a density at which there is nothing to tell apart."""
    if not 0.0 < density < 1.0:
        raise ConfigError(
            f"an edge density of {density:g} is not between 0 and 1: the test needs a graph with "
            "edges that is not complete"
        )
