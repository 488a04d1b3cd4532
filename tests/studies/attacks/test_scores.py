import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

from fedlap_app.errors import DataError
from fedlap_app.studies.attacks.scores import RATES, Scores, curve_of, measure


def drawn(distance=1.0, edges=400, others=4000, seed=0, digits=12):
    rng = np.random.default_rng(seed)
    real = np.arange(edges + others) < edges
    values = np.round(rng.standard_normal(real.size) + distance * real, digits)
    return Scores(values, real, np.arange(real.size))


@pytest.mark.parametrize("digits", [0, 1, 12])
def test_the_curve_agrees_with_scikit_learn(digits):
    scores = drawn(digits=digits)
    curve = curve_of(scores)
    assert curve.auc == pytest.approx(roc_auc_score(scores.edges, scores.values))
    alarms, recalls, _ = roc_curve(scores.edges, scores.values, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_alarms, alarms)
    np.testing.assert_allclose(curve.recalls, recalls)
    for rate in RATES:
        assert curve.recall_at(rate) == recalls[alarms <= rate].max()
    share = scores.edges.mean()
    average = np.sum(np.diff(curve.recalls) * curve.precisions(share)[1:])
    assert average == pytest.approx(average_precision_score(scores.edges, scores.values))


def test_precision_is_that_of_the_density_and_not_of_the_sample():
    curve = curve_of(drawn())
    at = int(np.argmin(abs(curve.recalls - 0.5)))
    hits, alarms = 1e-3 * curve.recalls[at], (1 - 1e-3) * curve.false_alarms[at]
    assert curve.precisions(1e-3)[at] == pytest.approx(hits / (hits + alarms))
    assert curve.precisions(1e-3)[0] == 1.0


def test_the_interval_holds_the_truth_as_often_as_it_says():
    truth = norm.cdf(1 / np.sqrt(2))
    inside = 0
    for seed in range(60):
        low, high = measure(drawn(edges=80, others=300, seed=seed), seed)["auc_interval"]
        inside += low <= truth <= high
    assert inside >= 51  # 57 of 60 are expected; fewer than 51 happen once in 200 times


def test_groups_widen_the_interval():
    one = drawn(edges=60, others=600)
    many = Scores(np.tile(one.values, 10), np.tile(one.edges, 10), np.tile(one.groups, 10))
    alone = measure(one, 0)["auc_interval"]
    copied = measure(many, 0)["auc_interval"]
    assert copied == pytest.approx(alone, abs=1e-9)


def test_the_same_seed_gives_the_same_numbers():
    assert measure(drawn(), 3) == measure(drawn(), 3)


def test_one_kind_alone_cannot_be_scored():
    with pytest.raises(DataError, match="Of 3 pairs 0 are edges"):
        Scores(np.zeros(3), np.zeros(3, bool), np.arange(3))
