"""Scores against scikit-learn."""

import math

import numpy as np
import pytest
import torch
from sklearn import metrics

from fedlap_app.api.prediction import Prediction
from fedlap_app.models.evaluation import evaluate, log_probabilities_of, score
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors

SPEC = ModelSpec("sage", 6, 4)


def _evaluated(subgraph, seed=0):
    tensors = GraphTensors.from_subgraph(subgraph, SPEC)
    rng = np.random.default_rng(seed)
    # The last class is never predicted and, in some splits, never true.
    logits = rng.normal(size=(tensors.num_nodes, 4)) - np.array([0, 0, 0, 10])
    log_probabilities = torch.from_numpy(logits).log_softmax(1).numpy()
    return log_probabilities, score(log_probabilities, tensors)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("split", ["train", "val", "test"])
def test_scores_equal_those_of_scikit_learn(make_subgraph, seed, split):
    subgraph = make_subgraph(n=20, classes=4, seed=seed)
    log_probabilities, evaluation = _evaluated(subgraph, seed)
    mask = getattr(subgraph, f"{split}_mask")
    truth, guess = subgraph.labels[mask], log_probabilities[mask].argmax(axis=1)
    scores = evaluation[split]
    assert (scores.count, scores.correct) == (len(truth), (truth == guess).sum())
    assert scores.accuracy == pytest.approx(metrics.accuracy_score(truth, guess))
    labels = np.unique(np.concatenate([truth, guess]))
    f1 = metrics.f1_score(truth, guess, labels=labels, average="macro", zero_division=0)
    assert scores.macro_f1 == pytest.approx(f1)
    recall = metrics.recall_score(truth, guess, labels=range(4), average=None, zero_division=np.nan)
    assert np.allclose(scores.recall, recall, equal_nan=True)
    loss = metrics.log_loss(truth, np.exp(log_probabilities[mask]), labels=range(4))
    assert scores.loss == pytest.approx(loss)


def test_the_sum_over_organisations_is_the_score_of_all_nodes(make_subgraph):
    parts = [make_subgraph(classes=4, seed=seed) for seed in range(3)]
    pairs = [_evaluated(part, seed) for seed, part in enumerate(parts)]
    total = pairs[0][1] + pairs[1][1] + pairs[2][1]
    truth = np.concatenate([part.labels[part.test_mask] for part in parts])
    guess = np.concatenate(
        [pair[0][part.test_mask].argmax(axis=1) for pair, part in zip(pairs, parts, strict=True)]
    )
    assert total.test.accuracy == pytest.approx(metrics.accuracy_score(truth, guess))
    assert total.test.macro_f1 == pytest.approx(
        metrics.f1_score(truth, guess, average="macro", zero_division=0)
    )


def test_a_split_without_nodes(make_subgraph):
    nobody = np.zeros(30, dtype=bool)
    subgraph = make_subgraph(classes=4, val_mask=nobody)
    scores = _evaluated(subgraph)[1].val
    assert (scores.count, scores.correct, scores.loss_sum) == (0, 0, 0.0)
    assert all(math.isnan(value) for value in (scores.accuracy, scores.loss, scores.macro_f1))
    assert np.isnan(scores.recall).all()


def test_predictions_are_those_that_are_scored(make_subgraph):
    subgraph = make_subgraph(classes=4)
    tensors = GraphTensors.from_subgraph(subgraph, SPEC)
    model = build_model(SPEC, seed=2)
    found = Prediction(
        log_probabilities_of(model, tensors), evaluate(model, tensors), np.array([]), np.array([])
    )
    classes, probability = found.classes, found.probabilities
    with torch.no_grad():
        expected = model.eval()(tensors).softmax(1).max(dim=1)
    assert np.array_equal(classes, expected.indices)
    assert np.allclose(probability, expected.values)
    right = (classes == subgraph.labels)[subgraph.test_mask]
    assert found.evaluation.test.correct == right.sum()
