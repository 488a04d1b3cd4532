import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.errors import DataError
from fedlap_app.graphs.graph import Graph, cut, join
from fedlap_app.graphs.splits import draw_masks
from tests.graphs.conftest import cut_randomly, random_graph


def by_id(ids, matrix):
    order = np.argsort(ids)
    return matrix[order][:, order]


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 25),
    edges=st.integers(0, 80),
    seed=st.integers(0, 10**6),
    directed=st.booleans(),
    parts=st.integers(1, 25),
)
def test_joining_what_was_cut_gives_the_whole(nodes, edges, seed, directed, parts):
    graph = random_graph(nodes, edges, seed, directed=directed)
    pieces = cut_randomly(graph, min(parts, nodes), seed)
    whole = join(pieces)
    assert sum(piece.num_nodes for piece in pieces) == nodes
    assert whole.name == "central"
    assert whole.num_external == 0
    np.testing.assert_array_equal(
        by_id(whole.ids, whole.out_adjacency()).toarray(),
        by_id(graph.ids, graph.adjacency()).toarray(),
    )
    mine, theirs = np.argsort(whole.ids), np.argsort(graph.ids)
    np.testing.assert_array_equal(whole.labels[mine], graph.labels[theirs])
    np.testing.assert_array_equal(whole.features[mine], graph.features[theirs])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), directed=st.booleans(), parts=st.integers(1, 8))
def test_every_edge_is_known_to_exactly_its_owners(seed, directed, parts):
    graph = random_graph(20, 50, seed, directed=directed)
    pieces = cut_randomly(graph, parts, seed)
    intra = sum(piece.intra_edges[1].size for piece in pieces)
    inter = sum(piece.inter_edges[1].size for piece in pieces)
    assert intra + inter / 2 == graph.edge_weight.size
    holder = {node: piece.name for piece in pieces for node in piece.ids}
    for piece in pieces:
        assert [holder[node] for node in piece.external_ids] == piece.external_owners.tolist()
        assert list(zip(piece.external_owners, piece.external_ids, strict=True)) == sorted(
            zip(piece.external_owners, piece.external_ids, strict=True)
        )


def test_a_cut_keeps_the_order_of_nodes_and_their_rows():
    graph = random_graph(10, 20)
    masks = draw_masks(graph.labels, (0.5, 0.2, 0.3), np.random.default_rng(0))
    first, second = cut(graph, np.array([0, 1] * 5), ["one", "two"], masks)
    assert first.ids.tolist() == graph.ids[::2].tolist()
    np.testing.assert_array_equal(second.features, graph.features[1::2])
    np.testing.assert_array_equal(second.train_mask, masks.train[1::2])


def test_one_part_is_the_whole():
    graph = random_graph()
    (only,) = cut_randomly(graph, 1)
    assert only.num_external == 0
    np.testing.assert_array_equal(only.edge_index, graph.edge_index)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ([0, 1], "one whole number for each of the 10 nodes"),
        ([0.5] * 10, "whole number"),
        ([0] * 10, "gives 'two' no node"),
        ([0, 2] * 5, "no more names"),
        ([0, -1] * 5, "no more names"),
    ],
)
def test_bad_assignments_are_refused(assignment, message):
    graph = random_graph(10, 20)
    masks = draw_masks(graph.labels, (0.5, 0.2, 0.3), np.random.default_rng(0))
    with pytest.raises(DataError, match=message):
        cut(graph, np.array(assignment), ["one", "two"], masks)


def test_two_parts_of_one_name_are_refused():
    graph = random_graph(10, 20)
    masks = draw_masks(graph.labels, (0.5, 0.2, 0.3), np.random.default_rng(0))
    with pytest.raises(DataError, match="'one' twice"):
        cut(graph, np.array([0, 1] * 5), ["one", "one"], masks)


def without_first_inter_edge(part):
    index = part.inter_edges[0][:, 0]
    keep = ~(
        (part.edge_index == index[:, None]).all(0) | (part.edge_index == index[::-1, None]).all(0)
    )
    used = np.unique(part.edge_index[:, keep])
    gone = set(range(part.num_nodes, part.num_nodes + part.num_external)) - set(used.tolist())
    assert not gone, "choose a graph in which the external node has another edge"
    return dataclasses.replace(
        part, edge_index=part.edge_index[:, keep], edge_weight=part.edge_weight[keep]
    )


def test_joining_needs_both_sides_of_an_edge():
    parts = cut_randomly(random_graph(10, 90), 2)
    parts[0] = without_first_inter_edge(parts[0])
    with pytest.raises(DataError, match="Only one organisation lists the edge"):
        join(parts)


def test_joining_needs_one_weight():
    parts = cut_randomly(random_graph(10, 90), 2)
    parts[0] = dataclasses.replace(parts[0], edge_weight=2 * parts[0].edge_weight)
    with pytest.raises(DataError, match="different weight at its two"):
        join(parts)


def test_joining_needs_every_owner():
    with pytest.raises(DataError, match="nobody holds it"):
        join(cut_randomly(random_graph(), 3)[:2])


def test_joining_needs_one_schema():
    parts = cut_randomly(random_graph(), 2)
    parts[1] = dataclasses.replace(parts[1], classes=("blue", "green", "red"))
    with pytest.raises(DataError, match="differ in their classes"):
        join(parts)


def test_joining_nothing_is_refused():
    with pytest.raises(DataError, match="nothing to join"):
        join([])


def test_joining_sparse_features_stays_sparse():
    graph = random_graph()
    sparse = dataclasses.replace(graph, features=sp.csr_array(np.eye(40, 3)))
    whole = join(cut_randomly(sparse))
    assert sp.issparse(whole.features)
    assert whole.features.sum() == 3


@pytest.mark.parametrize("directed", [False, True])
def test_saving_a_whole_graph(tmp_path, directed):
    graph = random_graph(directed=directed)
    graph.save(tmp_path / "whole.graph")
    again = Graph.load(tmp_path / "whole.graph")
    np.testing.assert_array_equal(again.edge_index, graph.edge_index)
    np.testing.assert_array_equal(again.features, graph.features)
    assert again.owner is None
    assert again.directed == directed


def test_an_edge_outside_the_graph_is_refused():
    with pytest.raises(DataError, match="outside 0 to 39"):
        dataclasses.replace(random_graph(), edge_index=np.array([[0], [40]]), edge_weight=[1.0])
