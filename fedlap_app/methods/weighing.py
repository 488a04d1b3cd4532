"""How the branches of a model are weighed: sums over organisations, and a step by their total.

The log-probabilities of the branches are added with weights w that are not negative, and the
weights minimise the mean cross-entropy of the sum over all validation nodes plus
PENALTY |w|^2. That is a convex problem: one Newton step a round, from the loss' gradient and
curvature at the weights that the round began with, follows the branches while they are trained.
Whoever holds the total makes the same step: + - * / of float64 in a fixed order.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PENALTY = 0.003
LARGEST_MOVE = 0.5  # of one weight in one step
DECIMALS = 3  # of an organisation's means: what an answer may tell
_SWEEPS = 100

Floats = NDArray[np.float64]


def size(branches: int) -> int:
    """How many numbers an organisation's sums are."""
    return 1 + branches + branches * (branches + 1) // 2


def sums(log_probabilities: Floats, labels: NDArray[np.int64], weights: Floats) -> list[float]:
    """What an organisation adds: nodes, and gradient and curvature of their cross-entropies.

    Parameters
    ----------
    log_probabilities
        Of every branch, (branches, nodes, classes), of the validation nodes.
    labels
        Their classes.
    weights
        Of the branches.
    """
    branches, count, _ = log_probabilities.shape
    if not count:
        return [0.0] * size(branches)
    logits = np.tensordot(weights, log_probabilities, axes=1)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = odds / odds.sum(axis=1, keepdims=True)
    expected = (p * log_probabilities).sum(axis=2)
    gradient = (expected - log_probabilities[:, np.arange(count), labels]).mean(axis=1)
    second = np.einsum("nc,anc,bnc->ab", p, log_probabilities, log_probabilities)
    curvature = (second - expected @ expected.T) / count
    upper = curvature[np.triu_indices(branches)]
    means = np.round(np.concatenate([gradient, upper]), DECIMALS)
    return [float(count), *(count * means).tolist()]


def columns(weights: NDArray[np.floating]) -> dict[str, float]:
    """The weights as columns of what a run writes of a round."""
    return {f"branch_weight_{at}": round(float(value), 4) for at, value in enumerate(weights)}


def total(clients: Sequence[Sequence[float]]) -> list[float]:
    """The sums of all organisations, added in the order they come in."""
    return [float(sum(values)) for values in zip(*clients, strict=True)]


def step(weights: Floats, summed: Sequence[float]) -> Floats:
    """The weights after one Newton step on the penalised loss, none of them negative.

    Parameters
    ----------
    weights
        Those at which the sums were made.
    summed
        `sums` over all organisations; without validation nodes the weights stay.
    """
    branches, nodes = len(weights), summed[0]
    if not nodes > 0:
        return weights
    means = np.asarray(summed[1:], dtype=np.float64) / nodes
    curvature = np.zeros((branches, branches))
    curvature[np.triu_indices(branches)] = means[branches:]
    curvature = curvature + np.triu(curvature, 1).T
    slope = means[:branches] + 2 * PENALTY * weights
    for number in range(branches):
        curvature[number, number] += 2 * PENALTY
    moved = [0.0] * branches
    for _ in range(_SWEEPS):
        for number in range(branches):
            # The minimum along one weight, with the others where they are now.
            others = slope[number]
            for other in range(branches):
                if other != number:
                    others = others + curvature[number, other] * moved[other]
            least = max(-float(weights[number]), -LARGEST_MOVE)
            best = -float(others) / float(curvature[number, number])
            moved[number] = min(max(best, least), LARGEST_MOVE)
    return np.asarray(np.maximum(weights + np.asarray(moved), 0.0), dtype=np.float64)
