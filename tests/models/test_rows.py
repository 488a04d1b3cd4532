from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlap_app.errors import ConfigError
from fedlap_app.models.evaluation import evaluate
from fedlap_app.models.rows import build_row_model, rayleigh_share, smooth_rows
from fedlap_app.models.smoothness import LaplacianShare
from fedlap_app.models.specs import ModelSpec, StructureSpec, TrainSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import cross_entropy, train_epochs

SPEC = ModelSpec("decoupled", num_features=6, num_classes=3, hidden=(8,))
STRUCTURE = StructureSpec(rank=1, width=7, num_classes=3, activation="none")


@pytest.fixture
def make(make_subgraph):
    """Model with random rows, and its data."""

    def build(features=SPEC, **fields):
        part = make_subgraph(**fields)
        share = LaplacianShare.from_subgraph(part, "sym", self_loops=1.0)
        tensors = replace(GraphTensors.from_subgraph(part, SPEC), share=share)
        model = build_row_model(features, STRUCTURE, 0, share.held)
        rows = np.random.default_rng(1).standard_normal((share.held, 7)).astype(np.float32)
        with torch.no_grad():
            model.rows.copy_(torch.from_numpy(rows))
        return model.eval(), tensors

    return build


def test_logits_are_those_of_the_features_plus_those_of_the_scaled_directions(make):
    model, tensors = make()
    t = model.rows / model.rows.norm(dim=1, keepdim=True)
    expected = model.features(tensors) + model.structure(tensors.share.scale * t)
    torch.testing.assert_close(model(tensors), expected)
    alone, tensors = make(features=None)
    torch.testing.assert_close(alone(tensors), alone.structure(tensors.share.scale * t))


def test_the_length_of_a_row_does_not_count(make):
    model, tensors = make()
    before, rough = model(tensors), rayleigh_share(model, tensors)
    with torch.no_grad():
        model.rows.mul_(torch.linspace(0.1, 3.0, len(model.rows)).unsqueeze(1))
    torch.testing.assert_close(model(tensors), before)
    torch.testing.assert_close(rayleigh_share(model, tensors), rough)


def test_the_objective_adds_lambda_times_the_regulariser(make):
    model, tensors = make()
    expected = cross_entropy(model, tensors) + 2.5 * rayleigh_share(model, tensors)
    torch.testing.assert_close(smooth_rows(2.5)(model, tensors), expected)
    torch.testing.assert_close(smooth_rows(0.0)(model, tensors), cross_entropy(model, tensors))


def test_training_moves_every_row_that_has_a_neighbour(make):
    model, tensors = make()
    before = model.rows.detach().clone()
    spec = TrainSpec(epochs=1, learning_rate=0.01, weight_decay=0.0)
    train_epochs(model, tensors, spec, 0, objective=smooth_rows(1.0))
    linked = np.diff(tensors.share.matrix.forward.crow_indices().numpy()) > 0
    moved = (model.rows.detach() != before).any(dim=1).numpy()
    assert moved[linked].all()


def test_rows_are_smoothed_where_no_node_has_a_label(make):
    nobody = np.zeros(30, dtype=bool)
    model, tensors = make(train_mask=nobody)
    before = float(rayleigh_share(model, tensors).detach())
    nodes = train_epochs(model, tensors, TrainSpec(epochs=20), 0, objective=smooth_rows(1.0))
    assert nodes == 0
    assert float(rayleigh_share(model, tensors).detach()) < 0.9 * before


def test_rows_of_zeros_stay_finite(make):
    model, tensors = make()
    with torch.no_grad():
        model.rows.zero_()
    train_epochs(model, tensors, TrainSpec(epochs=2), 0, objective=smooth_rows(1.0))
    assert np.isfinite(evaluate(model, tensors).train.loss)


def test_data_without_edges_of_the_whole_is_refused(make):
    model, tensors = make()
    with pytest.raises(ConfigError, match="without its edges"):
        model(replace(tensors, share=None))
