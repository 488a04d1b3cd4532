"""Branches that share a product, each with its own loss, and their weights."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlap_app.models.networks import FeatureModel, Intercept
from fedlap_app.models.portfolio import (
    FLOOR,
    Portfolio,
    build_portfolio,
    build_row_portfolio,
    evaluate_branches,
)
from fedlap_app.models.specs import BRANCH_WEIGHTS, ModelSpec, Reading, StructureSpec
from fedlap_app.models.structure import StructureHead
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import loss_of

STRUCTURE = StructureSpec(rank=6, width=4, num_classes=3, dropout=0.0)
READINGS = [Reading("diffused", 5.0), Reading("flat", smoothing=1.0), Reading("ends", centre=1.0)]


@pytest.fixture
def specs(make_subgraph):
    part = make_subgraph()
    spec = ModelSpec(
        "decoupled", part.features.shape[1], len(part.classes), hidden=(5,), relay=True
    )
    return {"sage": replace(spec, kind="sage"), "decoupled": spec, "mlp": replace(spec, hops=0)}


@pytest.fixture
def tensors(make_subgraph, specs):
    part = make_subgraph()
    made = GraphTensors.from_subgraph(part, specs["mlp"], others=["sage"])
    rows = np.random.default_rng(0).standard_normal((part.num_nodes, 6))
    return made.with_basis(rows, np.linspace(0.1, 1.7, 6))


def structure_for(specs):
    return replace(STRUCTURE, num_classes=specs["mlp"].num_classes)


def test_branches_are_the_single_models(specs, tensors):
    model = build_portfolio(specs, None, (), 3).eval()
    assert model.names == ["sage", "decoupled", "mlp"]
    for name, logits in zip(model.names, model.branches(tensors), strict=True):
        single = FeatureModel(specs[name]).eval()
        single.load_state_dict(model.features[name].state_dict())
        own = replace(tensors, kind=specs[name].kind, others={},
                      propagation=tensors.propagation_of(specs[name].kind))  # fmt: skip
        torch.testing.assert_close(logits, single(own))


def test_every_parameter_learns_from_its_own_branch_only(specs, tensors):
    model = build_portfolio(specs, structure_for(specs), READINGS, 0).eval()
    names, losses = model.names, [loss_of(logits, tensors) for logits in model.branches(tensors)]
    expected = sum(losses[:3]) / 3 + sum(losses[3:]) + model.structure["flat"].roughness(tensors)
    torch.testing.assert_close(model.objective(tensors), expected)
    for number, name in enumerate(names):
        model.zero_grad()
        losses[number].backward(retain_graph=True)
        moved = {key.split(".")[1] for key, value in model.named_parameters()
                 if value.grad is not None and value.grad.any()}  # fmt: skip
        assert moved == {name}


def test_weights_choose_the_features_alone_and_the_structure_alone(specs, tensors):
    model = build_portfolio(specs, structure_for(specs), READINGS, 0).eval()
    found = [logits.log_softmax(dim=1).clamp(min=FLOOR) for logits in model.branches(tensors)]
    for chosen in range(len(found)):
        weights = torch.zeros(len(found))
        weights[chosen] = 1.0
        model.get_buffer(BRANCH_WEIGHTS).copy_(weights)
        torch.testing.assert_close(model(tensors), found[chosen])
    evaluation, validation = evaluate_branches(model, tensors)
    assert validation.shape[:2] == (len(found), len(tensors.splits["val"]))
    assert evaluation.val.count == len(tensors.splits["val"])


def test_columns_are_read_in_three_ways():
    values = np.array([0.1, 0.9, 1.5])
    diffused, flat, ends = (reading.weights(values) for reading in READINGS)
    np.testing.assert_allclose(diffused, np.exp(-5.0 * (values - 0.1)))
    assert (flat == 1).all()
    np.testing.assert_allclose(ends, np.array([0.9, 0.1, 0.5]) / 0.9)
    assert [reading.columns(7) for reading in READINGS] == [7, 4, 7]
    np.testing.assert_allclose(Reading("ends", root=True).weights(np.array([4.0, 1.0])), [1.0, 0.5])


def test_without_features_a_class_frequency_stands_for_them(specs, tensors):
    bare = {name: replace(spec, num_features=0) for name, spec in specs.items()}
    model = build_portfolio(bare, structure_for(specs), READINGS, 0)
    assert isinstance(model.features["bias"], Intercept)
    assert model.names == ["bias", "diffused", "flat", "ends"]


def test_the_same_seed_gives_the_same_weights(specs):
    one, two = (build_portfolio(specs, structure_for(specs), READINGS, 7) for _ in range(2))
    for name, value in one.state_dict().items():
        assert torch.equal(value, two.state_dict()[name])


def test_learned_rows_are_a_branch(specs):
    head = replace(structure_for(specs), activation="none")
    model = build_row_portfolio(specs, head, 0, 9, 1.0)
    assert isinstance(model, Portfolio)
    assert model.names == ["sage", "decoupled", "mlp", "rows"]
    assert isinstance(model.structure["rows"], StructureHead)
    assert model.rows.shape == (9, 4)
