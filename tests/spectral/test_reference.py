import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.studies import true_spectrum
from tests.spectral import reference


def test_normalised_laplacian_is_that_of_scipy(graph):
    A = graph(np.random.default_rng(0), 40, 0.05, weighted=True)
    L = reference.whole_operator("sym", A, self_loops=0.0)
    theirs = sp.csgraph.laplacian(A, normed=True).toarray()
    assert L @ np.eye(40) == pytest.approx(theirs, abs=1e-12)
    plain = reference.whole_operator("laplacian", A)
    assert plain @ np.eye(40) == pytest.approx(sp.csgraph.laplacian(A).toarray(), abs=1e-12)


def test_regularised_is_the_printed_formula(graph):
    A = graph(np.random.default_rng(1), 30, 0.1)
    t = A.sum() / 30
    D = np.diag((A.sum(axis=1) + t) ** -0.5)
    true = np.eye(30) - D @ (A.toarray() + t / 30) @ D
    L = reference.whole_operator("regularised", A)
    assert L @ np.eye(30) == pytest.approx(true, abs=1e-12)


def test_krylov_space_holds_the_powers(graph):
    A = graph(np.random.default_rng(2), 50, 0.2)
    L = reference.whole_operator("sym", A)
    start = np.random.default_rng(3).standard_normal((50, 3))
    Q = reference.krylov(L, start, 9)
    assert pytest.approx(np.eye(9), abs=1e-13) == Q.T @ Q
    power = L @ (L @ start)
    assert Q @ (Q.T @ power) == pytest.approx(power, abs=1e-10)
    with pytest.raises(RunError, match="ends after"):
        reference.krylov(L, start, 51)


def test_eigenspace_of_a_disconnected_graph_has_all_zeros():
    path = sp.diags_array([np.ones(4), np.ones(4)], offsets=[-1, 1])
    A = sp.block_diag([path] * 7).tocsr()
    values, V = reference.eigenspace("laplacian", A, 3)
    assert values == pytest.approx(np.zeros(7), abs=1e-12)
    assert pytest.approx(np.eye(7), abs=1e-12) == V.T @ V


@pytest.mark.parametrize("keep", ["smallest", "largest", "magnitude"])
@pytest.mark.parametrize("kind", ["sym", "laplacian", "adjacency"])
def test_sparse_eigenspace_is_the_dense_one(graph, monkeypatch, kind, keep):
    A = graph(np.random.default_rng(4), 150, 0.1, weighted=True)
    values, V = reference.eigenspace(kind, A, 5, keep)
    monkeypatch.setattr(true_spectrum, "DENSE", 10)
    sparse_values, sparse_V = reference.eigenspace(kind, A, 5, keep)
    assert sparse_values == pytest.approx(values, abs=1e-8)
    assert reference.capture(sparse_V, V) == pytest.approx(1.0, abs=1e-8)


def test_capture_is_the_mean_squared_cosine():
    V = np.eye(6)[:, :3]
    U = np.array([[1, 0], [0, 0], [0, 0], [0, 1], [0, 0], [0, 0]], dtype=float)
    assert reference.capture(U, V) == pytest.approx(0.5)


def test_unknown_names_are_refused():
    with pytest.raises(ConfigError, match="spiral"):
        reference.whole_operator("spiral", sp.eye_array(2))
    with pytest.raises(ConfigError, match="middle"):
        reference.eigenspace("sym", sp.eye_array(2), 1, "middle")
