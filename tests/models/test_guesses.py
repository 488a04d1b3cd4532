"""Own predictions as labels."""

import numpy as np
import pytest
import torch

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.models.guesses import Guesses, GuessSpec, guess
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import cross_entropy

PREDICTED = np.log(np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.5, 0.5]]))
TRAINING = np.array([2])


def test_confident_nodes_get_their_likeliest_class():
    found = guess(PREDICTED, TRAINING, GuessSpec("hard", 0.6, 0.3))
    np.testing.assert_allclose(found.weights, [0.3, 0.3, 0.0, 0.0])
    np.testing.assert_array_equal(found.targets[:2], [[1, 0], [1, 0]])


def test_soft_guesses_are_squared_and_sum_to_one():
    found = guess(PREDICTED, TRAINING, GuessSpec("soft", 0.0, 1.0))
    np.testing.assert_array_equal(found.weights, [1, 1, 0, 1])
    np.testing.assert_allclose(found.targets.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(found.targets[0], [0.81 / 0.82, 0.01 / 0.82], rtol=1e-6)


def test_guesses_survive_a_file_and_junk_does_not_pass_for_one():
    found = guess(PREDICTED, TRAINING, GuessSpec("soft", 0.5, 0.5))
    again = Guesses.from_bytes(found.to_bytes())
    np.testing.assert_array_equal(again.targets, found.targets)
    np.testing.assert_array_equal(again.weights, found.weights)
    with pytest.raises(DataError, match="guesses"):
        Guesses.from_bytes(b"junk")


def test_the_loss_is_the_mean_over_labels_and_weighted_guesses(make_subgraph):
    subgraph = make_subgraph()
    spec = ModelSpec("gcn", subgraph.num_features, subgraph.num_classes, dropout=0.0)
    model, tensors = build_model(spec, seed=1), GraphTensors.from_subgraph(subgraph, spec)
    rng = np.random.default_rng(0)
    targets = rng.dirichlet(np.ones(3), subgraph.num_nodes).astype(np.float32)
    weights = (rng.random(subgraph.num_nodes) * ~subgraph.train_mask).astype(np.float32)
    loss = float(cross_entropy(model, tensors.with_guesses(Guesses(targets, weights))).detach())
    with torch.no_grad():
        logs = model(tensors).log_softmax(dim=1).numpy().astype(np.float64)
    nodes = np.flatnonzero(subgraph.train_mask)
    known = -logs[nodes, subgraph.labels[nodes]].sum()
    guessed = -(weights[:, None] * targets * logs).sum()
    assert loss == pytest.approx((known + guessed) / (len(nodes) + weights.sum()), rel=1e-5)


def test_guesses_for_other_data_are_refused(make_subgraph):
    subgraph = make_subgraph()
    spec = ModelSpec("gcn", subgraph.num_features, subgraph.num_classes)
    tensors = GraphTensors.from_subgraph(subgraph, spec)
    few = Guesses(np.ones((2, 3), dtype=np.float32), np.ones(2, dtype=np.float32))
    with pytest.raises(ConfigError, match="2 label guesses for 30 nodes"):
        tensors.with_guesses(few)
