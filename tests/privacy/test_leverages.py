import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from fedlap_app.errors import ConfigError
from fedlap_app.privacy.leakage import alpha_of, auc_of, largest_sum
from fedlap_app.studies.audit.leverages import Leverages, leverages_of
from tests.spectral import reference


@settings(max_examples=60, deadline=None)
@given(
    nodes=st.integers(1, 60),
    vectors=st.integers(1, 80),
    density=st.floats(1e-4, 0.999),
    seed=st.integers(0, 2**32),
    concentrated=st.booleans(),
)
def test_the_mean_of_alpha_is_the_rank_over_n_p_1_minus_p(
    nodes, vectors, density, seed, concentrated
):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((nodes, vectors))
    if concentrated:  # a few nodes carry nearly all of it, columns repeat
        rows *= np.exp(3.0 * rng.standard_normal((nodes, 1)))
        rows[:, vectors // 2 :] = rows[:, : vectors - vectors // 2]
    found = leverages_of(rows, density)
    assert found.rank == np.linalg.matrix_rank(rows, tol=1e-10 * np.linalg.norm(rows, 2))
    expected = found.rank / (nodes * density * (1 - density))
    assert abs(found.mean - expected) <= 1e-9 * expected
    assert found.largest <= 1 / (density * (1 - density)) * (1 + 1e-9)


@pytest.mark.parametrize(
    "graph", [nx.karate_club_graph(), nx.star_graph(30), nx.cycle_graph(40), nx.disjoint_union(
        nx.complete_graph(7), nx.path_graph(20))]
)  # fmt: skip
def test_the_mean_of_alpha_of_real_bases(graph):
    adjacency = sp.csr_array(nx.to_scipy_sparse_array(graph, weight=None, dtype=float))
    nodes = graph.number_of_nodes()
    _, basis = reference.eigenspace("sym", adjacency, 6, "smallest", self_loops=1.0)
    density = 0.13
    # The rows of a target that holds half of the nodes.
    half = basis[: nodes // 2]
    found = leverages_of(half, density)
    expected = np.linalg.matrix_rank(half) / (len(half) * density * (1 - density))
    assert found.mean == pytest.approx(expected, rel=1e-9)


def test_alpha_is_the_quadratic_form_of_the_theorem():
    rng = np.random.default_rng(3)
    rows, density = rng.standard_normal((50, 7)), 0.04
    sigma = density * (1 - density) * rows.T @ rows
    alpha = np.diag(rows @ np.linalg.inv(sigma) @ rows.T)
    found = leverages_of(rows, density)
    np.testing.assert_allclose(found.alpha, alpha, rtol=1e-9)
    assert found.p99 == pytest.approx(np.quantile(alpha, 0.99))
    assert found.largest == pytest.approx(alpha.max())
    assert found.auc == pytest.approx(ndtr(np.sqrt(alpha / 2)).mean())
    # By concavity the mean AUC is at most that of the mean.
    assert found.auc < auc_of(alpha_of(7, 50, density))


def test_columns_may_be_combined():
    rng = np.random.default_rng(5)
    rows, mixed = rng.standard_normal((30, 4)), rng.standard_normal((4, 4))
    first, second = leverages_of(rows, 0.2), leverages_of(rows @ mixed, 0.2)
    np.testing.assert_allclose(first.alpha, second.alpha, rtol=1e-8)


def test_equal_leverages_give_the_sum_of_the_corollary():
    density = 0.01
    equal = Leverages(np.full(40, 3.7), 4)
    assert equal.largest_sum(density) == pytest.approx(largest_sum(3.7, density), abs=1e-3)
    uneven = Leverages(np.concatenate([np.full(36, 0.5), np.full(4, 32.5)]), 4)
    assert uneven.mean == pytest.approx(3.7)
    # A few nodes with large leverages are found although the mean says that none is.
    assert uneven.largest_sum(density) > 1.0 > equal.largest_sum(density)
    assert Leverages(np.zeros(3), 0).largest_sum(density) == pytest.approx(0.95 + density)


def test_a_density_of_nothing_is_refused():
    with pytest.raises(ConfigError, match="edge density of 0"):
        leverages_of(np.eye(3), 0.0)
