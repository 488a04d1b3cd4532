"""Areas under curves from summed histograms, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.methods.scores import (
    Best,
    Layout,
    average_precision,
    by_metric,
    is_better,
    pack,
    roc_auc,
    total,
    train_loss,
    unpack,
    withhold,
)
from fedlap_app.models.evaluation import Evaluation, SplitScores, bin_of, histogram_of
from fedlap_app.models.options import SCORE_BINS as BINS
from fedlap_app.settings import parse_settings

LAYOUT = Layout(3, BINS)


def drawn(count: int, seed: int, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities that know something of the labels."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, count, p=[0.7, 0.2, 0.1][:classes])
    logits = rng.normal(size=(count, classes)) * 2.0
    logits[np.arange(count), truth] += 1.5
    return logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)), truth


def split_of(count: int, seed: int) -> SplitScores:
    logs, truth = drawn(count, seed)
    pairs = np.bincount(truth * 3 + logs.argmax(axis=1), minlength=9).reshape(3, 3)
    return SplitScores(pairs, float(count), histogram_of(logs, truth, BINS))


def of(seed: int, count: int = 40) -> Evaluation:
    train = SplitScores(np.eye(3, dtype=np.int64), 1.5)
    return Evaluation(train, split_of(count, seed), split_of(count, seed + 1))


def test_the_areas_are_those_of_scores_rounded_to_bins() -> None:
    logs, truth = drawn(600, 3)
    bins = bin_of(logs, BINS)
    histogram = histogram_of(logs, truth, BINS).astype(float)
    exact = [(roc_auc_score(truth == c, bins[:, c])) for c in range(3)]
    assert roc_auc(histogram) == pytest.approx(np.mean(exact))
    precisions = [(average_precision_score(truth == c, bins[:, c])) for c in range(3)]
    assert average_precision(histogram) == pytest.approx(np.mean(precisions))


def test_64_bins_cost_little() -> None:
    logs, truth = drawn(2000, 5)
    histogram = histogram_of(logs, truth, BINS).astype(float)
    exact = roc_auc_score(truth, np.exp(logs), multi_class="ovr", average="macro")
    assert roc_auc(histogram) == pytest.approx(exact, abs=0.001)
    precision = np.mean([average_precision_score(truth == c, logs[:, c]) for c in range(3)])
    assert average_precision(histogram) == pytest.approx(precision, abs=0.01)


def test_two_classes_have_the_usual_area() -> None:
    rng = np.random.default_rng(1)
    chance = np.clip(rng.beta(2, 6, 1000), 1e-6, 1 - 1e-6)
    truth = (rng.random(1000) < chance).astype(np.int64)
    logs = np.log(np.stack([1 - chance, chance], axis=1))
    found = roc_auc(histogram_of(logs, truth, BINS).astype(float))
    assert found == pytest.approx(roc_auc_score(truth, chance), abs=0.002)


def test_summed_over_clients_they_are_those_of_all_nodes() -> None:
    clients = [of(seed) for seed in (1, 5, 9)]
    totals = total([unpack(pack(client), LAYOUT) for client in clients])
    whole = clients[0] + clients[1] + clients[2]
    assert whole.val.histogram is not None
    assert by_metric(totals, "val", "roc-auc") == roc_auc(whole.val.histogram.astype(float))
    pairs = [drawn(40, seed) for seed in (1, 5, 9)]
    logs, truth = (np.concatenate(each) for each in zip(*pairs, strict=True))
    exact = roc_auc_score(truth, np.exp(logs), multi_class="ovr")
    assert by_metric(totals, "val", "roc-auc") == pytest.approx(exact, abs=0.01)


def test_the_length_follows_from_the_settings() -> None:
    assert len(pack(of(1))) == LAYOUT.size == 12 + 2 * 2 * 3 * BINS
    assert np.isnan(by_metric(total([unpack(pack(of(1)), LAYOUT)]), "train", "roc-auc"))


def test_a_split_of_few_nodes_has_no_histogram() -> None:
    few = unpack(withhold(pack(of(1, count=9)), 10, LAYOUT), LAYOUT)
    many = unpack(withhold(pack(of(5)), 10, LAYOUT), LAYOUT)
    assert not few["val-histogram"].any()
    assert total([few, many])["val_roc_auc"] == total([many])["val_roc_auc"]


def test_rounds_are_judged_by_the_metric() -> None:
    worse = {"val_accuracy": 0.9, "val_roc_auc": 0.6, "val_loss": 0.1}
    better = {"val_accuracy": 0.8, "val_roc_auc": 0.7, "val_loss": 0.2}
    assert is_better(better, worse, "roc-auc")
    assert not is_better(better, worse)


def test_rounds_of_a_portfolio_are_judged_by_their_loss_as_well() -> None:
    lucky = {"val_accuracy": 0.80, "val_loss": 0.70}
    later = {"val_accuracy": 0.79, "val_loss": 0.65}
    several = FedAvg.of(parse_settings({"method": "fedavg"}))
    single = FedAvg.of(parse_settings({"method": "fedavg", "model": "sage"}))
    by_area = FedAvg.of(parse_settings({"method": "fedavg", "metric": "roc-auc"}))
    for method, share in ((several, 0.5), (single, 0.0), (by_area, 0.0)):
        assert Best.of(method).loss_share == share
    best, first = Best.of(several), Best.of(single)
    assert best.takes(1, lucky)
    assert best.takes(2, later)
    assert first.takes(1, lucky)
    assert not first.takes(2, later)
    assert best.is_ahead_of(first)


def test_the_training_loss_comes_first() -> None:
    packed = [pack(of(1)), pack(of(5))]
    assert train_loss(packed) == total([unpack(each, LAYOUT) for each in packed])["train_loss"]
