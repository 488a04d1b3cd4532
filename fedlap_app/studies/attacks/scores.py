"""How well scores tell edges from other pairs: AUC, recall at low false-positive rates, precision.

Intervals are percentile bootstraps over groups (all pairs with the same first node, for instance),
because pairs that share a node are not independent.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

RATES = (1e-2, 1e-3)
"""False-positive rates at which the recall is reported."""

RESAMPLES = 200
_LEVEL = (0.025, 0.975)


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of pairs, edges and others; a larger score means "an edge".

    Attributes
    ----------
    values
        (N,) scores.
    edges
        (N,) whether the pair is an edge.
    groups
        (N,) number of the group that a pair belongs to.
    """

    values: Array
    edges: Bools
    groups: Ints

    def __post_init__(self) -> None:
        found = int(self.edges.sum())
        if not 0 < found < self.edges.size:
            raise DataError(
                f"Of {self.edges.size} pairs {found} are edges: an attack can be scored only with "
                "both kinds, take a larger graph or another target."
            )

    def order(self) -> Ints:
        """Positions from the largest score to the smallest."""
        return np.argsort(-self.values, kind="stable")


@dataclass(frozen=True, eq=False)
class Curve:
    """False-positive rate and recall over all thresholds, from none called to all called."""

    false_alarms: Array
    recalls: Array

    @property
    def auc(self) -> float:
        """Area below the curve; ties count one half."""
        return float(np.trapezoid(self.recalls, self.false_alarms))

    def recall_at(self, rate: float) -> float:
        """Largest recall with a false-positive rate of at most `rate`."""
        return float(self.recalls[np.searchsorted(self.false_alarms, rate, side="right") - 1])

    def precisions(self, density: float) -> Array:
        """Precision where a share `density` of all pairs are edges; 1 where nothing is called."""
        hits = density * self.recalls
        called = hits + (1.0 - density) * self.false_alarms
        return np.divide(hits, called, out=np.ones_like(hits), where=called > 0.0)


def curve_of(scores: Scores, weights: Array | None = None) -> Curve:
    """The curve of all pairs, or of pairs that count `weights` times."""
    order = scores.order()
    return _sorted_curve(
        scores.edges[order],
        _ends(scores.values[order]),
        None if weights is None else weights[order],
    )


def measure(scores: Scores, seed: int, resamples: int = RESAMPLES) -> dict[str, Any]:
    """AUC and recall at the rates of `RATES`, each with its 95 % interval.

    Parameters
    ----------
    scores
        Scores of all pairs.
    seed
        Of the bootstrap.
    resamples
        Bootstrap samples (default: 200).
    """
    order = scores.order()
    edges, ends = scores.edges[order], _ends(scores.values[order])
    _, groups = np.unique(scores.groups[order], return_inverse=True)
    count = int(groups.max()) + 1
    rng = np.random.default_rng([seed, 0xB007])
    samples = []
    for _ in range(resamples):
        drawn = np.bincount(rng.integers(count, size=count), minlength=count)
        weights = drawn[groups].astype(np.float64)
        hits = weights @ edges
        if 0.0 < hits < weights.sum():
            samples.append(_numbers(_sorted_curve(edges, ends, weights)))
    best = _numbers(_sorted_curve(edges, ends, None))
    low, high = np.quantile(np.array(samples or [best]), _LEVEL, axis=0)
    names = ("auc", *(f"tpr_at_fpr_{rate:g}" for rate in RATES))
    report: dict[str, Any] = {}
    for at, name in enumerate(names):
        report[name] = best[at]
        report[f"{name}_interval"] = [float(low[at]), float(high[at])]
    return {**report, "edges": int(edges.sum()), "others": int((~edges).sum())}


def _numbers(curve: Curve) -> list[float]:
    return [curve.auc, *(curve.recall_at(rate) for rate in RATES)]


def _ends(values: Array) -> Ints:
    """Last position of every run of equal values."""
    return np.flatnonzero(np.append(values[1:] != values[:-1], True)).astype(np.int64)


def _sorted_curve(edges: Bools, ends: Ints, weights: Array | None) -> Curve:
    if weights is None:
        found = np.cumsum(edges)[ends].astype(np.float64)
        called = ends + 1.0
    else:
        found = np.cumsum(weights * edges)[ends]
        called = np.cumsum(weights)[ends]
    alarms = called - found
    return Curve(
        np.concatenate([[0.0], alarms / alarms[-1]]), np.concatenate([[0.0], found / found[-1]])
    )
