"""Clipped gradients of single examples: what they add up to, and what one node can change."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlap_app.errors import ConfigError
from fedlap_app.models.examples import Examples, clipped_sum, moved
from fedlap_app.models.fusion import build_fused, smooth_cross_entropy
from fedlap_app.models.networks import build_model
from fedlap_app.models.parameters import parameters_of
from fedlap_app.models.portfolio import build_portfolio
from fedlap_app.models.specs import ModelSpec, Reading, StructureSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import cross_entropy

CLASSES = 3
ALONE = ModelSpec("decoupled", 6, CLASSES, hidden=(8,), hops=0, dropout=0.0)
STRUCTURE = StructureSpec(rank=4, width=5, num_classes=CLASSES, dropout=0.0)
FUSED = smooth_cross_entropy(0.5, 1.0)


def tensors_of(part, spec=ALONE):
    made = GraphTensors.from_subgraph(part, spec)
    rng = np.random.default_rng(3)
    return made.with_basis(rng.normal(size=(part.num_nodes, 4)), np.array([0.0, 0.1, 0.4, 0.9]))


def summed(model, tensors, clip, objective=cross_entropy, seed=1):
    examples = Examples.of(tensors, CLASSES)
    return clipped_sum(model, tensors, examples, objective=objective, clip=clip, seed=seed)


def length(gradients):
    return float(sum(value.square().sum() for value in gradients.values()).sqrt())


MODELS = {
    "mlp": (lambda: build_model(ALONE, 0), cross_entropy),
    "fused": (lambda: build_fused(ALONE, STRUCTURE, 0), FUSED),
    "structure": (lambda: build_fused(None, STRUCTURE, 0), FUSED),
    "portfolio": (
        lambda: build_portfolio({"mlp": ALONE}, STRUCTURE, [Reading("diffused", 2.0)], 0),
        lambda model, tensors: model.objective(tensors),
    ),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_without_clipping_they_are_the_gradient_of_the_loss(make_subgraph, name, sparse):
    """Torch's gradient of the mean over all training nodes, times their number."""
    make, objective = MODELS[name]
    model = make()
    tensors = tensors_of(make_subgraph(sparse=sparse, density=0.02))
    count = len(tensors.splits["train"])
    found = summed(model, tensors, 1e9, objective)
    names, parameters = zip(*model.named_parameters(), strict=True)
    expected = torch.autograd.grad(objective(model, tensors), parameters, materialize_grads=True)
    for key, value in zip(names, expected, strict=True):
        torch.testing.assert_close(found[key], count * value.double(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_no_node_changes_the_sum_by_more_than_the_norm(make_subgraph, name):
    """Each training node in turn is left out: features, label and all that follows from them."""
    make, objective = MODELS[name]
    model, clip = make(), 0.05
    part = make_subgraph()
    whole = summed(model, tensors_of(part), clip, objective)
    longest = 0.0
    for node in np.flatnonzero(part.train_mask):
        features, kept = part.features.copy(), part.train_mask.copy()
        features[node], kept[node] = 50.0, False
        without = summed(
            model, tensors_of(replace(part, features=features, train_mask=kept)), clip, objective
        )
        changed = length({key: whole[key] - without[key] for key in whole})
        longest = max(longest, changed)
        assert changed <= clip * (1 + 1e-6)
    assert longest > 0.9 * clip  # it is these gradients that were clipped


def test_a_guess_is_an_example_like_a_label(make_subgraph):
    """It counts by its weight, at most once, and is clipped too."""
    tensors = tensors_of(make_subgraph())
    other = int(np.flatnonzero(tensors.targets.numpy() < 0)[0])
    targets, weights = torch.zeros(tensors.num_nodes, CLASSES), torch.zeros(tensors.num_nodes)
    targets[other, 1] = 1.0
    model, lengths = build_model(ALONE, 0), []
    known = summed(model, tensors, 0.05)
    for weight in (0.3, 1.0, 7.0):
        weights[other] = weight
        guessed = summed(model, replace(tensors, guesses=(targets, weights.clone())), 0.05)
        lengths.append(length({key: guessed[key] - known[key] for key in known}))
    assert lengths == pytest.approx([0.3 * 0.05, 0.05, 0.05], rel=1e-3)


def test_a_gradient_that_is_no_number_leaves_as_nothing(make_subgraph):
    part = make_subgraph()
    node = int(np.flatnonzero(part.train_mask)[0])
    tensors = tensors_of(part)
    tensors.x.x[node] = torch.inf
    model, kept = build_model(ALONE, 0), part.train_mask.copy()
    kept[node] = False
    without = summed(model, tensors_of(replace(part, train_mask=kept)), 0.05)
    found = summed(model, tensors, 0.05)
    for key, value in without.items():
        torch.testing.assert_close(found[key], value)


@pytest.mark.parametrize(("kind", "hops"), [("sage", 2), ("gcn", 2), ("decoupled", 1)])
def test_a_model_that_reads_neighbours_is_refused(make_subgraph, kind, hops):
    spec = replace(ALONE, kind=kind, hops=hops)
    with pytest.raises(ConfigError, match="hops = 0"):
        summed(build_model(spec, 0), tensors_of(make_subgraph(), spec), 1.0)


def test_the_step_is_one_of_gradient_descent(make_subgraph):
    """Torch's, with weight decay and a step size of one."""
    model, tensors = build_model(ALONE, 0), tensors_of(make_subgraph())
    count = len(tensors.splits["train"])
    after = moved(model, summed(model, tensors, 1e9), count, 0.01)
    before = parameters_of(model)
    rule = torch.optim.SGD(model.parameters(), lr=1.0, weight_decay=0.01)
    cross_entropy(model, tensors).backward()
    rule.step()
    for name, value in parameters_of(model).items():
        assert np.allclose(after[name] - before[name], value - before[name], atol=1e-5)
