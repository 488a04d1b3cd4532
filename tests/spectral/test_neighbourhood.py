"""Sums over neighbours in parts, and which of them are left out."""

import numpy as np
import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.graph import join
from fedlap_app.spectral.neighbourhood import Neighbourhood, own_ends, unheard
from tests.sums.programs.conftest import graph_of, parts_of


@pytest.fixture
def parts():
    # Node 1 borders 4 and 5, node 4 borders 1 and 2; all others have one foreign neighbour or none.
    edges = [(0, 1), (1, 2), (1, 4), (1, 5), (2, 4), (3, 6), (6, 5)]
    X = np.arange(14.0).reshape(7, 2)
    return parts_of(graph_of(edges, 7, X), [0, 0, 0, 0, 1, 1, 1])


def test_nodes_with_few_foreign_neighbours_are_unheard(parts):
    first, second = parts
    assert unheard(first, 2).tolist() == [False, False, True, True]
    assert unheard(second, 2).tolist() == [False, True, True]
    assert not unheard(first, 1).any()
    assert unheard(first, 3).tolist() == [False, True, True, True]


def test_a_sender_counts_its_own_ends(parts):
    for part in parts:
        rows = part.out_adjacency()[:, part.num_nodes :].toarray()
        assert own_ends(part).tolist() == (rows != 0).sum(axis=0).tolist()


def test_what_is_owed_and_own_adds_up_to_the_product(parts):
    A = join(parts).out_adjacency().toarray()
    X = np.arange(14.0).reshape(7, 2)
    near = [Neighbourhood(p, "none", 1, np.ones(p.num_external, dtype=bool)) for p in parts]
    rows = [X[:4], X[4:]]
    received = [np.zeros((4, 2)), np.zeros((3, 2))]
    for sender, part in enumerate(parts):
        at = [int(name[1:]) - 4 * (sender == 0) for name in part.external_ids.tolist()]
        received[1 - sender][at] += near[sender].owed(rows[sender], 0)
    found = [each.combine(*pair) for each, *pair in zip(near, rows, received, strict=True)]
    np.testing.assert_array_equal(np.vstack(found), A @ X)


def test_what_came_for_unheard_nodes_does_not_count(parts):
    first = parts[0]
    near = Neighbourhood(first, "none", 2, np.ones(first.num_external, dtype=bool))
    noisy = near.combine(np.zeros((4, 1)), np.ones((4, 1)))
    assert noisy[:, 0].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_an_unknown_scaling_is_refused(parts):
    with pytest.raises(ConfigError, match="choose one of none, mean, sym"):
        Neighbourhood(parts[0], "half", 2, np.zeros(parts[0].num_external, dtype=bool))
