"""The models against torch_geometric's layers with the same weights."""

import numpy as np
import pytest
import torch
from torch_geometric.nn import GCNConv, SAGEConv

from fedlap_app.errors import ConfigError
from fedlap_app.models.networks import build_model
from fedlap_app.models.parameters import parameters_of
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors


def _inputs(subgraph):
    return torch.from_numpy(subgraph.features.copy()), torch.from_numpy(subgraph.edge_index.copy())


def _built(subgraph, kind, **options):
    spec = ModelSpec(kind, subgraph.num_features, subgraph.num_classes, **options)
    return build_model(spec, seed=1).eval(), GraphTensors.from_subgraph(subgraph, spec)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("input_norm", [False, True])
def test_sage_equals_sageconv(make_subgraph, directed, input_norm):
    subgraph = make_subgraph(directed=directed, weighted=False)
    model, tensors = _built(subgraph, "sage", hidden=(8,), input_norm=input_norm)
    x, edges = _inputs(subgraph)
    hidden = torch.nn.functional.layer_norm(x, (6,)) if input_norm else x
    for layer, last in zip(model.layers, (False, True), strict=True):
        outputs = len(layer.bias)
        convolution = SAGEConv(layer.weight.shape[0], outputs, aggr="mean")
        neighbours, own = layer.weight.detach().T.split(outputs)
        convolution.lin_l.weight.data, convolution.lin_r.weight.data = neighbours, own
        convolution.lin_l.bias.data = layer.bias.detach()
        hidden = convolution(hidden, edges)
        hidden = hidden if last else hidden.relu()
    torch.testing.assert_close(model(tensors), hidden)


@pytest.mark.parametrize("directed", [False, True])
def test_gcn_equals_gcnconv(make_subgraph, directed):
    subgraph = make_subgraph(directed=directed)
    model, tensors = _built(subgraph, "gcn", hidden=(8, 5), input_norm=False)
    hidden, edges = _inputs(subgraph)
    weight = torch.from_numpy(subgraph.edge_weight.copy()).float()
    for layer, last in zip(model.layers, (False, False, True), strict=True):
        convolution = GCNConv(*layer.weight.shape)
        convolution.lin.weight.data = layer.weight.detach().T
        convolution.bias.data = layer.bias.detach()
        hidden = convolution(hidden, edges, weight)
        hidden = hidden if last else hidden.relu()
    torch.testing.assert_close(model(tensors), hidden)


def test_decoupled_is_an_mlp_then_powers_of_the_random_walk(make_subgraph):
    subgraph = make_subgraph()
    model, tensors = _built(subgraph, "decoupled", hidden=(8,), hops=3)
    first, second = model.layers
    x = torch.nn.functional.layer_norm(_inputs(subgraph)[0], (6,))
    logits = (x @ first.weight + first.bias).relu() @ second.weight + second.bias
    looped = subgraph.in_adjacency().toarray() + np.eye(30)
    walk = np.linalg.matrix_power(looped / looped.sum(axis=1, keepdims=True), 3)
    torch.testing.assert_close(model(tensors), torch.from_numpy(walk).float() @ logits)


@pytest.mark.parametrize("kind", ["sage", "gcn", "decoupled"])
def test_edges_to_external_nodes_are_left_out(make_subgraph, kind):
    index = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    outside = {
        "external_ids": np.array(["w"]),
        "external_owners": np.array(["other"]),
        "edge_index": np.array([[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]]),
        "edge_weight": np.ones(6),
    }
    alone = make_subgraph(n=3, edge_index=index, edge_weight=np.ones(4))
    joined = make_subgraph(n=3, **outside)
    model, tensors = _built(alone, kind)
    assert torch.equal(model(tensors), model(_built(joined, kind)[1]))


@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"dropout": 0.0, "input_dropout": 0.5}])
def test_dropout_acts_in_training_only(make_subgraph, options):
    model, tensors = _built(make_subgraph(), "sage", **options)
    assert torch.equal(model(tensors), model(tensors))
    model.train()
    assert not torch.equal(model(tensors), model(tensors))


@pytest.mark.parametrize("kind", ["sage", "gcn", "decoupled"])
def test_the_seed_decides_the_weights_and_nothing_else_changes(kind):
    spec = ModelSpec(kind, 5, 3)
    state = torch.random.get_rng_state()
    first, again, other = (parameters_of(build_model(spec, seed)) for seed in (4, 4, 5))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert all(not np.array_equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("kind", ["sage", "gcn", "decoupled"])
def test_without_features_only_a_bias_is_left(make_subgraph, kind):
    model, tensors = _built(make_subgraph(d=0), kind)
    assert [tuple(value.shape) for value in model.parameters()] == [(3,)]
    assert torch.equal(model(tensors), torch.zeros(30, 3))


@pytest.mark.parametrize("kind", ["sage", "gcn", "decoupled"])
@pytest.mark.parametrize("hidden", [(), (4,)])
def test_one_node_without_edges(make_subgraph, kind, hidden):
    model, tensors = _built(make_subgraph(n=1), kind, hidden=hidden)
    assert model(tensors).shape == (1, 3)
    assert model(tensors).isfinite().all()


def test_tensors_of_another_kind_are_refused(make_subgraph):
    model, _ = _built(make_subgraph(), "sage")
    _, tensors = _built(make_subgraph(), "gcn")
    with pytest.raises(ConfigError, match="'sage' and the tensors are for 'gcn'"):
        model(tensors)
