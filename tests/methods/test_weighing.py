"""Weights of branches: the minimum that scipy finds, from sums that organisations add."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fedlap_app.methods import weighing


def problem(seed, nodes=400, branches=4, classes=3):
    """Log-probabilities of branches that know more and less of the labels, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, nodes)
    logits = rng.standard_normal((branches, nodes, classes))
    for number in range(branches):
        logits[number, np.arange(nodes), labels] += 0.6 * number
    odds = np.exp(logits)
    return np.log(odds / odds.sum(axis=2, keepdims=True)), labels


def loss(weights, found, labels):
    logits = np.tensordot(weights, found, axes=1)
    own = logits[np.arange(len(labels)), labels]
    return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - own)) + weighing.PENALTY * float(
        weights @ weights
    )


def optimised(parts, branches, steps=30):
    weights = np.full(branches, 1.0 / branches)
    for _ in range(steps):
        summed = weighing.total([weighing.sums(*part, weights) for part in parts])
        weights = weighing.step(weights, summed)
    return weights


@pytest.mark.parametrize("seed", range(3))
def test_steps_end_at_the_minimum_without_negative_weights(seed):
    found, labels = problem(seed)
    parts = [(found[:, at : at + 100], labels[at : at + 100]) for at in range(0, 400, 100)]
    weights = optimised(parts, 4)
    start = np.full(4, 0.25)
    best = minimize(loss, start, (found, labels), bounds=[(0, None)] * 4, method="L-BFGS-B")
    assert loss(weights, found, labels) == pytest.approx(best.fun, abs=1e-5)
    np.testing.assert_allclose(weights, best.x, atol=0.02)
    assert (weights >= 0).all()


def test_a_branch_that_says_the_opposite_ends_at_zero():
    found, labels = problem(5, branches=2)
    wrong = np.roll(found[1], 1, axis=1)
    weights = optimised([(np.stack([found[1], wrong]), labels)], 2)
    assert weights[1] == 0.0
    assert weights[0] > 0.5


def test_sums_over_parts_are_the_sums_over_all():
    found, labels = problem(1)
    weights = np.array([0.1, 0.0, 0.5, 0.2])
    whole = np.array(weighing.sums(found, labels, weights))
    halves = [weighing.sums(found[:, side], labels[side], weights)
              for side in (slice(0, 150), slice(150, 400))]  # fmt: skip
    assert len(whole) == weighing.size(4)
    # Every organisation's means are rounded.
    np.testing.assert_allclose(weighing.total(halves), whole, atol=400 * 10.0**-weighing.DECIMALS)


def test_without_validation_nodes_weights_stay():
    empty = weighing.sums(np.zeros((2, 0, 3)), np.zeros(0, dtype=np.int64), np.ones(2))
    assert not any(empty)
    weights = np.array([0.3, 0.7])
    assert weighing.step(weights, weighing.total([empty, empty])) is weights
