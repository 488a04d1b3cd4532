"""Local training."""

import numpy as np
import pytest
import torch

from fedlap_app.errors import RunError
from fedlap_app.models.guesses import Guesses
from fedlap_app.models.networks import build_model
from fedlap_app.models.optimizer import Optimizer
from fedlap_app.models.parameters import parameters_of
from fedlap_app.models.specs import ModelSpec, TrainSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import cross_entropy, proximal, train_epochs

KINDS = ["sage", "gcn", "decoupled"]


def _built(subgraph, kind="sage", **options):
    spec = ModelSpec(kind, subgraph.num_features, subgraph.num_classes, **options)
    return build_model(spec, seed=1), GraphTensors.from_subgraph(subgraph, spec)


def _same(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_seed_gives_the_same_bits(make_subgraph, kind, sparse):
    results = []
    for seed in (7, 7, 8):
        model, tensors = _built(make_subgraph(sparse=sparse), kind)
        torch.manual_seed(len(results))
        state = torch.random.get_rng_state()
        train_epochs(model, tensors, TrainSpec(epochs=5), seed)
        assert torch.equal(state, torch.random.get_rng_state())
        results.append(parameters_of(model))
    assert _same(results[0], results[1])
    assert not _same(results[0], results[2])


def test_one_epoch_of_descent_is_the_formula(make_subgraph):
    model, tensors = _built(make_subgraph(), "gcn", hidden=(), input_norm=False)
    before = parameters_of(model)
    subgraph = make_subgraph()
    train = subgraph.train_mask
    loss = float(cross_entropy(model, tensors).detach())
    nodes = train_epochs(
        model, tensors, TrainSpec(1, "sgd", learning_rate=0.1, weight_decay=0.01), seed=0
    )
    x = tensors.propagation.forward.to_dense().double().numpy() @ subgraph.features
    logits = x @ before["layers.0.weight"] + before["layers.0.bias"]
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = probabilities - np.eye(3)[subgraph.labels]
    weight, bias = before["layers.0.weight"], before["layers.0.bias"]
    weight = weight - 0.1 * (x[train].T @ error[train] / train.sum() + 0.01 * weight)
    bias = bias - 0.1 * (error[train].mean(axis=0) + 0.01 * bias)
    after = parameters_of(model)
    assert np.allclose(after["layers.0.weight"], weight, atol=1e-6)
    assert np.allclose(after["layers.0.bias"], bias, atol=1e-6)
    truth = probabilities[train, subgraph.labels[train]]
    assert loss == pytest.approx(-np.log(truth).mean(), rel=1e-5)
    assert nodes == train.sum()


@pytest.mark.parametrize("kind", KINDS)
def test_training_learns(make_subgraph, kind):
    model, tensors = _built(make_subgraph(), kind, dropout=0.0)
    before = float(cross_entropy(model, tensors).detach())
    train_epochs(model, tensors, TrainSpec(epochs=200, weight_decay=0.0), seed=0)
    assert float(cross_entropy(model, tensors).detach()) < 0.2 * before


def test_a_bias_alone_learns_the_class_shares(make_subgraph):
    subgraph = make_subgraph(d=0)
    model, tensors = _built(subgraph)
    train_epochs(model, tensors, TrainSpec(300, "sgd", 1.0, 0.0), seed=0)
    labels = subgraph.labels[subgraph.train_mask]
    shares = np.bincount(labels, minlength=3) / len(labels)
    assert np.allclose(model(tensors)[0].softmax(0).detach(), shares, atol=1e-4)


def test_without_training_nodes_nothing_changes(make_subgraph):
    nobody = np.zeros(30, dtype=bool)
    model, tensors = _built(make_subgraph(train_mask=nobody))
    before = parameters_of(model)
    assert train_epochs(model, tensors, TrainSpec(), seed=0) == 0
    assert _same(before, parameters_of(model))


def test_one_class(make_subgraph):
    model, tensors = _built(make_subgraph(classes=1))
    assert train_epochs(model, tensors, TrainSpec(), seed=0) > 0
    assert float(cross_entropy(model, tensors).detach()) == 0.0


def test_divergence_is_said(make_subgraph):
    model, tensors = _built(make_subgraph())
    with pytest.raises(RunError, match=r"diverged with learning rate 1e\+30.*lower"):
        train_epochs(model, tensors, TrainSpec(10, "sgd", 1e30, 0.0), seed=0)


def test_a_kept_optimizer_goes_on_where_it_was(make_subgraph):
    spec = TrainSpec(epochs=6)
    whole, tensors = _built(make_subgraph(), dropout=0.0)
    train_epochs(whole, tensors, spec, seed=0)
    parts, _ = _built(make_subgraph(), dropout=0.0)
    kept = Optimizer(parts.parameters(), spec)
    for epochs in (2, 4):
        train_epochs(parts, tensors, TrainSpec(epochs=epochs), seed=0, optimizer=kept)
    assert _same(parameters_of(whole), parameters_of(parts))


def test_the_objective_can_be_another(make_subgraph):
    model, tensors = _built(make_subgraph())
    norm = lambda model, _: sum(value.square().sum() for value in model.parameters())  # noqa: E731
    spec = TrainSpec(1, "sgd", 0.5, 0.0)
    train_epochs(model, tensors, spec, seed=0, objective=norm)
    assert all((value == 0).all() for value in model.parameters())


def test_the_proximal_term_pulls_to_where_the_model_was(make_subgraph):
    model, tensors = _built(make_subgraph(), dropout=0.0)
    pulled = proximal(cross_entropy, 0.7, model)
    anchors = [value.detach().clone() for value in model.parameters()]
    assert pulled(model, tensors).item() == cross_entropy(model, tensors).item()
    with torch.no_grad():
        for value in model.parameters():
            value += 0.25
    parameters = list(model.parameters())
    plain = torch.autograd.grad(cross_entropy(model, tensors), parameters)
    with_pull = torch.autograd.grad(pulled(model, tensors), parameters)
    for value, anchor, one, other in zip(parameters, anchors, plain, with_pull, strict=True):
        torch.testing.assert_close(other - one, 0.7 * (value.detach() - anchor))


def test_balanced_classes_weigh_the_same(make_subgraph):
    model, tensors = _built(make_subgraph(), "gcn")
    balanced = tensors.balanced(3)
    with torch.no_grad():
        logs = model.eval()(tensors).log_softmax(dim=1).numpy()
        found = float(cross_entropy(model, balanced))
        guesses = Guesses(np.eye(3, dtype=np.float32)[tensors.labels], np.zeros(len(logs), "f4"))
        again = float(cross_entropy(model, balanced.with_guesses(guesses)))
    train = tensors.splits["train"]
    truth = tensors.labels[train]
    own = [-logs[train][truth == c, c].mean() for c in np.unique(truth)]
    assert found == pytest.approx(np.mean(own), rel=1e-5)
    assert again == pytest.approx(found, rel=1e-5)
