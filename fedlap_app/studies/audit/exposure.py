"""What the paper's worst-case attacker learns about the edges of one target, in numbers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedlap_app.privacy.leakage import (
    alpha_of,
    auc_of,
    best_f1,
    kl_of,
    largest_sum,
    largest_vectors,
    largest_vectors_auc,
    recall_at,
)
from fedlap_app.studies.audit.leverages import Leverages

WORST = (
    "the paper's worst case: all others together, who know the target's rows of every vector "
    "exchanged, their images, all degrees and p, and test one row of A for one edge"
)
BOTH_ROWS = (
    "the same attacker with both rows of an undirected edge, which the paper leaves out: alpha "
    "counts twice"
)
TABLE = (5, 10, 20, 30, 50, 75, 100, 150, 200, 300, 500)
"""Numbers of vectors in a table."""


@dataclass(frozen=True)
class Target:
    """Whose edges are looked for.

    Attributes
    ----------
    name
        The organisation, or "whole graph".
    nodes
        Its nodes, n_1.
    density
        Share p of their pairs that are connected.
    vectors
        Vectors exchanged, M.
    leverages
        Exact alpha_v, where the basis is known.
    """

    name: str
    nodes: int
    density: float
    vectors: int
    leverages: Leverages | None = None

    @property
    def rank(self) -> int:
        """Independent equations about each row of A; more vectors than nodes say nothing new."""
        return min(self.vectors, self.nodes) if self.leverages is None else self.leverages.rank

    @property
    def alpha(self) -> float:
        """Mean of alpha_v, exact on every graph."""
        return alpha_of(self.rank, self.nodes, self.density)

    def with_vectors(self, vectors: int) -> "Target":
        """The same target with another number of vectors; leverages are not known for it."""
        return replace(self, vectors=vectors, leverages=None)


def measures(target: Target) -> dict[str, Any]:
    """Numbers of the theorem and its corollary for one target."""
    alpha = target.alpha
    return {
        "target": target.name,
        "nodes": target.nodes,
        "density": target.density,
        "vectors": target.vectors,
        "rank": target.rank,
        **_alphas(target),
        "kl": kl_of(alpha),
        "auc": auc_of(alpha),
        "auc_both_rows": auc_of(2.0 * alpha),
        "tpr_at_fpr_0.01": recall_at(1e-2, alpha),
        "tpr_at_fpr_0.001": recall_at(1e-3, alpha),
        "best_f1": best_f1(alpha, target.density),
        "best_p_plus_r": largest_sum(alpha, target.density),
    }


def limits(target: Target, auc_bound: float) -> dict[str, Any]:
    """The largest numbers of vectors that keep P + R at most 1, and the AUC within a bound."""
    return {
        "largest_vectors_p_plus_r": largest_vectors(target.nodes, target.density),
        "largest_vectors_auc": largest_vectors_auc(target.nodes, target.density, auc_bound),
        "auc_bound": auc_bound,
    }


def table_of(target: Target, counts: Sequence[int]) -> list[dict[str, Any]]:
    """The same numbers over the vectors exchanged, by the mean of alpha_v."""
    keys = ("vectors", "alpha_mean", "kl", "auc", "auc_both_rows", "tpr_at_fpr_0.01",
            "tpr_at_fpr_0.001", "best_f1", "best_p_plus_r")  # fmt: skip
    rows = (measures(target.with_vectors(count)) for count in sorted(set(counts)))
    return [{key: row[key] for key in keys} for row in rows]


def most_exposed(targets: Sequence[Target]) -> Target:
    """The target whose edges are easiest to find; one without a pair of nodes has none."""
    return max(targets, key=lambda each: (each.nodes > 1, each.alpha, each.name))


def _alphas(target: Target) -> dict[str, Any]:
    """alpha_v: exact with the basis; by the paper's approximation all are the mean."""
    exact = target.leverages
    return {
        "alpha_exact": exact is not None,
        "alpha_mean": target.alpha if exact is None else exact.mean,
        "alpha_p99": target.alpha if exact is None else exact.p99,
        "alpha_largest": target.alpha if exact is None else exact.largest,
        "auc_exact_alpha": None if exact is None else exact.auc,
        "best_p_plus_r_exact_alpha": (None if exact is None else exact.largest_sum(target.density)),
    }
