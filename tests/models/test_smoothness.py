"""The regulariser as a sum of the organisations' shares, against matrices of the whole graph."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.graph import Graph, cut
from fedlap_app.models.smoothness import LaplacianShare, laplacian_share


def federation(seed, *, nodes=24, edges=50, clients=3, directed=False):
    """A random weighted graph as a dense symmetric matrix, and its organisations' parts."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(nodes, size=(2, edges))
    weights = rng.uniform(0.1, 3.0, size=nodes * nodes)
    graph = Graph(
        ids=np.array([f"v{i:03d}" for i in rng.permutation(nodes)]),
        features=np.zeros((nodes, 1), dtype=np.float32),
        labels=np.zeros(nodes, dtype=np.int64),
        edge_index=pairs,
        edge_weight=weights[np.minimum(*pairs) * nodes + np.maximum(*pairs)],
        classes=("a",),
        feature_names=("f",),
        directed=directed,
    )
    owner = rng.permutation(np.arange(nodes) % clients)
    mask = np.zeros(nodes, dtype=bool)
    parts = cut(graph, owner, [f"org-{i}" for i in range(clients)], (mask, mask, mask))
    adjacency = np.zeros((nodes, nodes))
    np.maximum.at(adjacency, tuple(graph.edge_index), graph.edge_weight)
    adjacency = np.maximum(adjacency, adjacency.T)
    place = {node: i for i, node in enumerate(graph.ids.tolist())}
    held = [
        np.array([place[x] for x in (*part.ids.tolist(), *part.external_ids.tolist())])
        for part in parts
    ]
    return adjacency, parts, held


def central(adjacency, operator, loops):
    """The operator of the whole graph, and d_v with S_v = sqrt(d_v) t_v."""
    degrees = adjacency.sum(axis=1)
    if operator == "laplacian":
        return np.diag(degrees) - adjacency, np.ones(len(degrees))
    looped = adjacency + loops * np.eye(len(degrees))
    d = degrees + loops
    root = np.divide(1.0, np.sqrt(d), where=d > 0, out=np.zeros_like(d))
    L = np.diag((d > 0).astype(float)) - root[:, None] * looped * root
    return L, np.where(d > 0, d, 1.0)


@given(
    seed=st.integers(0, 10_000),
    clients=st.integers(1, 5),
    edges=st.integers(0, 80),
    operator=st.sampled_from(["sym", "laplacian"]),
    loops=st.sampled_from([0.0, 1.0]),
    directed=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_shares_add_up_to_the_central_regulariser(
    seed, clients, edges, operator, loops, directed
):
    adjacency, parts, held = federation(seed, clients=clients, edges=edges, directed=directed)
    t = np.random.default_rng([seed, 1]).standard_normal((len(adjacency), 5))
    t /= np.linalg.norm(t, axis=1, keepdims=True)
    L, d = central(adjacency, operator, loops)
    S = np.sqrt(d)[:, None] * t
    rough = volume = 0.0
    for part, at in zip(parts, held, strict=True):
        share = LaplacianShare.from_subgraph(part, operator, self_loops=loops)
        own = torch.from_numpy(t[at].astype(np.float32))
        assert share.held == len(at)
        rough += float(share.roughness(own))
        volume += float(share.volume())
    expected = np.trace(S.T @ L @ S) / np.trace(S.T @ S)
    assert rough / volume == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert volume == pytest.approx(np.trace(S.T @ S), rel=1e-6)


@given(seed=st.integers(0, 10_000), clients=st.integers(1, 5), directed=st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_scattered_shares_are_the_laplacian(seed, clients, directed):
    adjacency, parts, held = federation(seed, clients=clients, directed=directed)
    total = np.zeros_like(adjacency)
    for part, at in zip(parts, held, strict=True):
        total[np.ix_(at, at)] += laplacian_share(part).toarray()
    np.testing.assert_allclose(total, central(adjacency, "laplacian", 0.0)[0], atol=1e-12)


def test_the_gradients_add_up_to_twice_the_laplacian_times_the_rows():
    adjacency, parts, held = federation(3, clients=4)
    t = np.random.default_rng(0).standard_normal((len(adjacency), 4)).astype(np.float32)
    gradient = np.zeros(t.shape)
    for part, at in zip(parts, held, strict=True):
        rows = torch.from_numpy(t[at]).requires_grad_()
        share = LaplacianShare.from_subgraph(part, "sym", self_loops=1.0)
        gradient[at] += torch.autograd.grad(share.roughness(rows), rows)[0].numpy()
    L = central(adjacency, "laplacian", 0.0)[0]
    np.testing.assert_allclose(gradient, 2.0 * L @ t, atol=1e-5)


def test_an_organisation_without_shared_edges_adds_its_own_graph(make_subgraph):
    part = make_subgraph()
    share = LaplacianShare.from_subgraph(part, "laplacian", self_loops=0.0)
    A = part.out_adjacency().toarray()
    expected = np.diag(A.sum(axis=1)) - A
    np.testing.assert_allclose(share.matrix.forward.to_dense().numpy(), expected, atol=1e-6)


def test_isolated_nodes_are_neither_rough_nor_scaled_away(make_subgraph):
    part = make_subgraph(edge_index=np.zeros((2, 0), dtype=int), edge_weight=np.zeros(0))
    share = LaplacianShare.from_subgraph(part, "sym", self_loops=0.0)
    t = torch.ones(part.num_nodes, 3)
    assert float(share.roughness(t)) == 0.0
    assert float(share.volume()) == part.num_nodes


def test_other_operators_are_refused(make_subgraph):
    with pytest.raises(ConfigError, match=r"operator = 'rw' .* takes sym or laplacian"):
        LaplacianShare.from_subgraph(make_subgraph(), "rw", self_loops=1.0)
