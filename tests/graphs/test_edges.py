import networkx as nx
import numpy as np
import pytest

from fedlap_app.errors import DataError
from fedlap_app.graphs.edges import simplify_edges

IDS = np.array(["a", "b", "c", "d"])


def simplify(edges, *, directed=False):
    rows = np.array(edges, dtype=float).reshape(-1, 3)
    index, weight = simplify_edges(
        rows[:, :2].T.astype(np.int64), rows[:, 2], IDS, directed=directed
    )
    return [(int(s), int(t), float(w)) for s, t, w in zip(*index, weight, strict=True)]


def test_both_directions_get_the_larger_weight():
    assert simplify([(0, 1, 2), (1, 0, 3), (2, 1, 1)]) == [
        (0, 1, 3.0),
        (1, 0, 3.0),
        (1, 2, 1.0),
        (2, 1, 1.0),
    ]


def test_direction_is_kept_when_asked():
    assert simplify([(1, 0, 3), (0, 1, 2), (3, 2, 1)], directed=True) == [
        (0, 1, 2.0),
        (1, 0, 3.0),
        (3, 2, 1.0),
    ]


def test_self_loops_and_exact_duplicates_are_dropped():
    assert simplify([(0, 0, 1), (1, 2, 5), (1, 2, 5), (1, 1, 2)], directed=True) == [(1, 2, 5.0)]


@pytest.mark.parametrize("directed", [False, True])
def test_one_edge_with_two_weights_is_an_error(directed):
    with pytest.raises(DataError, match=r"from 'b' to 'c' is listed with the weights 4 and 5"):
        simplify([(1, 2, 4), (0, 1, 1), (1, 2, 5)], directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_no_edges_stay_no_edges(directed):
    assert simplify([], directed=directed) == []
    assert simplify([(2, 2, 1)], directed=directed) == []


def test_networkx_finds_the_same_undirected_edges():
    rng = np.random.default_rng(3)
    pairs = rng.integers(30, size=(2, 200))
    index, _ = simplify_edges(
        pairs, np.ones(200), np.array([f"n{i}" for i in range(30)]), directed=False
    )
    network = nx.Graph(pairs.T.tolist())
    network.remove_edges_from(list(nx.selfloop_edges(network)))
    assert index.shape[1] == 2 * network.number_of_edges()
    assert all(network.has_edge(*pair) for pair in index.T.tolist())
