import dataclasses

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.banks import make_banks
from fedlap_app.graphs.partitions import divide, resolve_partition
from tests.graphs.conftest import random_graph


@settings(max_examples=20, deadline=None)
@given(
    name=st.sampled_from(["random", "louvain", "kmeans"]),
    nodes=st.integers(1, 40),
    edges=st.integers(0, 80),
    data=st.data(),
)
def test_every_node_is_in_one_part_and_no_part_is_empty(name, nodes, edges, data):
    parts = data.draw(st.integers(1, nodes))
    graph = random_graph(nodes, edges)
    assignment, names = divide(graph, name, parts, seed=1)
    assert assignment.shape == (nodes,)
    assert (np.bincount(assignment, minlength=parts) > 0).all()
    assert len(names) == parts
    assert names == sorted(names)
    again, _ = divide(graph, name, parts, seed=1)
    np.testing.assert_array_equal(assignment, again)


@pytest.mark.parametrize("name", ["random", "louvain", "kmeans"])
def test_another_seed_gives_another_partition(name):
    graph = random_graph(200, 400)
    assert not np.array_equal(divide(graph, name, 4, 0)[0], divide(graph, name, 4, 1)[0])


def caves(count, size):
    """Cliques without an edge between them."""
    network = nx.disjoint_union_all([nx.complete_graph(size) for _ in range(count)])
    graph = random_graph(count * size, 0)
    index = np.array(network.edges).T
    return dataclasses.replace(graph, edge_index=index, edge_weight=np.ones(index.shape[1]))


def test_louvain_keeps_cliques_together():
    assignment, _ = divide(caves(12, 10), "louvain", 4, 0)
    assert (assignment.reshape(12, 10) == assignment.reshape(12, 10)[:, :1]).all()
    assert np.bincount(assignment).tolist() == [30, 30, 30, 30]


def test_groups_beyond_an_even_share_plus_twenty_are_cut():
    assignment, _ = divide(caves(1, 100), "louvain", 5, 0)
    sizes = np.bincount(assignment, minlength=5)
    assert 100 // 5 + 20 - 2 <= sizes.max() <= 100 // 5 + 20  # two nodes fill the empty parts
    assert sizes.min() == 1


def test_isolated_nodes_form_one_group():
    graph = caves(4, 10)
    index = graph.edge_index[:, (graph.edge_index < 30).all(axis=0)]
    graph = dataclasses.replace(graph, edge_index=index, edge_weight=np.ones(index.shape[1]))
    assignment, _ = divide(graph, "louvain", 4, 0)
    assert np.unique(assignment[30:]).size == 1
    assert np.bincount(assignment).tolist() == [10, 10, 10, 10]


def test_kmeans_keeps_distant_clouds_together():
    graph = random_graph(90, 300)
    cloud = np.arange(90) % 3
    graph = dataclasses.replace(graph, features=graph.features + 1000 * np.eye(3)[cloud])
    assignment, _ = divide(graph, "kmeans", 3, 0)
    assert len({(int(a), int(c)) for a, c in zip(assignment, cloud, strict=True)}) == 3


def test_kmeans_needs_features():
    with pytest.raises(DataError, match="no features to cluster"):
        divide(random_graph(features=0), "kmeans", 2, 0)


def test_owners_are_the_natural_parts():
    graph = make_banks(300, 3, 0)
    assignment, names = divide(graph, "owner", 3, 0)
    assert names == ["bank-00", "bank-01", "bank-02"]
    np.testing.assert_array_equal(np.array(names)[assignment], graph.owner)


def test_other_partitions_replace_the_owners():
    assert divide(make_banks(300, 3, 0), "random", 3, 0)[1] == [
        "client-00",
        "client-01",
        "client-02",
    ]


def test_random_parts_are_about_even():
    sizes = np.bincount(divide(random_graph(1000, 0), "random", 5, 0)[0])
    assert abs(sizes - 200).max() < 60  # more than four standard deviations


@pytest.mark.parametrize("parts", [0, -1, 41])
def test_an_impossible_number_of_parts_is_refused(parts):
    with pytest.raises(DataError, match="take 1 to 40"):
        divide(random_graph(), "random", parts, 0)


def test_a_wrong_number_of_owners_is_refused():
    with pytest.raises(DataError, match="3 owners, not 4"):
        divide(make_banks(300, 3, 0), "owner", 4, 0)


def test_auto_takes_owners_where_there_are_some():
    assert resolve_partition("auto", has_owners=True) == "owner"
    assert resolve_partition("auto", has_owners=False) == "random"
    with pytest.raises(DataError, match="no natural owners"):
        resolve_partition("owner", has_owners=False)
    with pytest.raises(ConfigError, match="auto, owner, random, louvain, kmeans"):
        resolve_partition("metis", has_owners=True)
