"""Normalised adjacencies against their definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.models.propagation import Links, neighbour_mean, random_walk, symmetric
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors

# Edges 0 -> 1, 2 -> 1, 1 -> 0 and 3 -> 0.
DIRECTED = np.array([[0, 2.0, 0, 2.0], [1.0, 0, 3.0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
FORMS = {"sage": neighbour_mean, "decoupled": random_walk, "gcn": symmetric}


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def part(request):
    """One of three organisations, with edges to the others."""
    spec = DataSpec(dataset="banks", clients=3, accounts=200, directed=request.param)
    return load_federation(spec)[0]


def links(matrix):
    return Links(sp.csr_array(matrix))


def dense(found):
    whole = found.own.toarray()
    return whole if found.back is None else whole + (found.back @ found.relay).toarray()


def test_the_mean_is_over_in_neighbours():
    expected = [[0, 0.5, 0, 0.5], [0.25, 0, 0.75, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert np.allclose(dense(neighbour_mean(links(DIRECTED))), expected)


def test_the_random_walk_counts_the_node_itself_once():
    expected = [[0.2, 0.4, 0, 0.4], [0.2, 0.2, 0.6, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert np.allclose(dense(random_walk(links(DIRECTED))), expected)


@pytest.mark.parametrize("relay", [False, True])
def test_the_symmetric_form_is_similar_to_the_random_walk(relay):
    part = load_federation(DataSpec(dataset="banks", clients=3, accounts=200))[0]
    found = Links.of(part, relay=relay)
    walk, balanced = (dense(form(found)) for form in (random_walk, symmetric))
    assert np.allclose(balanced, balanced.T)
    assert np.allclose(np.linalg.eigvalsh(balanced), np.sort(np.linalg.eigvals(walk).real))


@pytest.mark.parametrize("kind", FORMS)
def test_one_node_without_edges(kind):
    empty = dense(FORMS[kind](links(np.zeros((1, 1)))))
    assert empty.tolist() == [[0 if kind == "sage" else 1]]


def test_external_nodes_say_the_mean_of_their_internal_neighbours(part):
    own = range(part.num_nodes)
    weights = np.zeros((part.num_nodes + part.num_external,) * 2)
    np.add.at(weights, tuple(part.edge_index[::-1]), part.edge_weight)
    expected = weights[np.ix_(own, own)].copy()
    for node in range(part.num_nodes, len(weights)):
        heard = weights[node, own]
        expected += np.outer(weights[own, node], heard / heard.sum() if heard.any() else heard)
    found = Links.of(part, relay=True)
    assert found.back is not None
    assert found.back.nnz
    assert np.allclose(dense(found), expected)
    assert np.allclose(found.degrees(), expected.sum(axis=1))
    assert np.allclose(dense(random_walk(found)).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", FORMS)
def test_the_tensors_multiply_by_that_matrix(part, kind):
    spec = ModelSpec(kind, part.features.shape[1], len(part.classes), relay=True)
    values = torch.randn(part.num_nodes, 3, requires_grad=True)
    product = GraphTensors.from_subgraph(part, spec).propagation.times(values)
    matrix = torch.from_numpy(dense(FORMS[kind](Links.of(part, relay=True)))).float()
    assert torch.allclose(product, matrix @ values, atol=1e-5)
    (gradient,) = torch.autograd.grad(product.square().sum(), values)
    (expected,) = torch.autograd.grad((matrix @ values).square().sum(), values)
    assert torch.allclose(gradient, expected, atol=1e-4)


def test_relays_change_nothing_without_external_nodes(make_subgraph):
    alone, relayed = (Links.of(make_subgraph(), relay=relay) for relay in (False, True))
    assert np.array_equal(dense(alone), dense(relayed))
