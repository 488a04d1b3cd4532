"""Rows for nodes that came later: means over neighbours, own ones and what foreign ones relay."""

import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.spectral.extension import COMPUTED, EXTENDED, NONE, extend, left_out


def links(size, *edges, foreign=0):
    """Adjacency rows (n, n + m) of undirected edges."""
    rows = sp.lil_array((size, size + foreign))
    for one, other in edges:
        rows[one, other] = 2.0  # a weight does not count
        if other < size:
            rows[other, one] = 2.0
    return rows.tocsr()


def random_links(size, foreign, seed):
    dense = (np.random.default_rng(seed).random((size, size + foreign)) < 0.3).astype(float)
    inside = np.triu(dense[:, :size], 1)
    dense[:, :size] = inside + inside.T
    return sp.csr_array(dense)


def test_own_and_foreign_neighbours_count_alike():
    # Node 3 is new: own neighbour 0, foreign neighbour 4 whose other sides here are 1 and 2.
    graph = links(4, (3, 0), (3, 4), (1, 4), (2, 4), foreign=1)
    U = np.array([[6.0], [1.0], [3.0], [0.0]])
    computed = np.array([True, True, True, False])
    scale = np.array([2.0, 1.0, 1.0, 0.0])
    rows = extend(U, computed, graph, scale, np.array([2.0, 1.0, 1.0, 5.0]))
    assert rows.U[3] == pytest.approx(5.0 * (6.0 / 2.0 + (1.0 + 3.0) / 2) / 2)
    assert np.array_equal(rows.U[:3], U[:3])
    assert list(rows.origins) == [COMPUTED] * 3 + [EXTENDED]


def test_a_node_behind_new_ones_waits_and_one_without_a_way_has_none():
    graph = links(4, (0, 1), (1, 2))
    U, computed = np.array([[4.0], [0.0], [0.0], [0.0]]), np.array([True, False, False, False])
    rows = extend(U, computed, graph, np.ones(4), np.ones(4))
    assert rows.U.ravel() == pytest.approx([4.0, 4.0, 4.0, 0.0])
    assert list(rows.origins) == [COMPUTED, EXTENDED, EXTENDED, NONE]


def test_a_row_that_came_from_neighbours_before_stays_and_is_none_of_the_basis():
    graph = links(4, (0, 1), (1, 2), (2, 3))
    U = np.array([[1.0], [5.0], [0.0], [0.0]])
    computed, held = np.array([True, False, False, False]), np.array([True, True, False, False])
    rows = extend(U, computed, graph, np.ones(4), np.ones(4), held)
    assert rows.U.ravel().tolist() == [1.0, 5.0, 5.0, 5.0]
    assert rows.origins.tolist() == [COMPUTED, EXTENDED, EXTENDED, EXTENDED]


def test_in_an_eigenvector_the_neighbours_say_one_minus_lambda_times_the_row():
    A = (random_links(30, 0, 3) + sp.eye_array(30, k=1) + sp.eye_array(30, k=-1)).toarray()
    A = (A > 0).astype(float)
    scale = np.sqrt(A.sum(axis=1))
    values, U = np.linalg.eigh(np.eye(30) - A / np.outer(scale, scale))
    rows, found = left_out(U, sp.csr_array(A), np.arange(30), scale)
    assert found.all()
    np.testing.assert_allclose(rows, U * (1.0 - values), atol=1e-12)


def test_a_left_out_node_gets_the_row_that_it_would_have_as_a_new_one():
    size = 12
    graph, random = random_links(size, 5, 1), np.random.default_rng(2)
    U, scale = random.normal(size=(size, 3)), random.uniform(1.0, 2.0, size)
    means, found = left_out(U, graph, np.arange(size), scale)
    for node in range(size):
        known = np.arange(size) != node
        old = np.where(known, scale, 0.0)
        rows = extend(np.where(known[:, None], U, 0.0), known, graph, old, scale)
        assert found[node] == rows.known[node]
        np.testing.assert_allclose(means[node], rows.U[node], atol=1e-12)
