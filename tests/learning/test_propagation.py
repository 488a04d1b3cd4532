"""Normalised adjacencies against their definitions."""

import numpy as np
import pytest

from fedlap_app.learning.propagation import neighbour_mean, random_walk, symmetric

INDEX = np.array([[0, 2, 1, 3], [1, 1, 0, 0]])
WEIGHT = np.array([1.0, 3.0, 2.0, 2.0])


def test_the_mean_is_over_in_neighbours():
    expected = [[0, 0.5, 0, 0.5], [0.25, 0, 0.75, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert np.allclose(neighbour_mean(INDEX, WEIGHT, 4).toarray(), expected)


def test_the_random_walk_counts_the_node_itself_once():
    expected = [[0.2, 0.4, 0, 0.4], [0.2, 0.2, 0.6, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert np.allclose(random_walk(INDEX, WEIGHT, 4).toarray(), expected)


def test_the_symmetric_form_is_similar_to_the_random_walk(make_subgraph):
    index, weight = make_subgraph().intra_edges
    walk, balanced = (form(index, weight, 30).toarray() for form in (random_walk, symmetric))
    assert np.allclose(balanced, balanced.T)
    assert np.allclose(np.linalg.eigvalsh(balanced), np.sort(np.linalg.eigvals(walk).real))


@pytest.mark.parametrize(("form", "own"), [(neighbour_mean, 0), (random_walk, 1), (symmetric, 1)])
def test_one_node_without_edges(form, own):
    empty = form(np.zeros((2, 0), dtype=np.int64), np.zeros(0), 1).toarray()
    assert empty.tolist() == [[own]]
