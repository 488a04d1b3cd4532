import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.spectral.solvers.block_lanczos import BlockLanczos
from tests.spectral import reference


def gathered(federation, solvers):
    Q, Z = (np.zeros((federation.n, solvers[0].columns)) for _ in range(2))
    for part, solver in zip(federation.parts, solvers, strict=True):
        Q[part.nodes], Z[part.nodes] = solver.Q, solver.Z
    return Q, Z


def run(federation, kind, start, vectors, noise=0.0):
    solvers = federation.solvers("block-lanczos", kind, start, vectors=vectors, noise=noise)
    modes = []
    while not solvers[0].done:
        modes.append(solvers[0].mode)
        federation.round(solvers)
    return solvers, modes


@pytest.mark.parametrize("kind", ["sym", "regularised", "laplacian", "adjacency"])
def test_hundred_vectors_in_eleven_rounds(graph, federate, kind):
    rng = np.random.default_rng(0)
    A = graph(rng, 400, 0.03)
    federation = federate(A, rng.integers(0, 10, 400), 10)
    solvers, _ = run(federation, kind, rng.standard_normal((400, 10)) / 20, 100)
    assert solvers[0].rounds == 11
    Q, Z = gathered(federation, solvers)
    assert np.linalg.norm(Q.T @ Q - np.eye(100), 2) < 1e-11
    L = reference.whole_operator(kind, A)
    assert Z * solvers[0].operator.unit == pytest.approx(L @ Q, abs=1e-10)


def test_nearly_dependent_candidates_are_tried_again(graph, federate):
    rng = np.random.default_rng(1)
    A = graph(rng, 100, 0.1)
    federation = federate(A, rng.integers(0, 3, 100), 3)
    start = rng.standard_normal((100, 4)) / 10
    start[:, 1] = start[:, 0] + 1e-5 * start[:, 1]
    start[:, 3] = start[:, 2]
    solvers, _ = run(federation, "sym", start, 30)
    Q, Z = gathered(federation, solvers)
    assert np.linalg.norm(Q.T @ Q - np.eye(30), 2) < 1e-12
    assert pytest.approx(reference.whole_operator("sym", A) @ Q, abs=1e-12) == Z
    # Both directions of the first pair are in the space, the copy adds nothing.
    for column in (start[:, 0], start[:, 1], start[:, 2]):
        assert Q @ (Q.T @ column) == pytest.approx(column, abs=1e-12)
    difference = (start[:, 1] - start[:, 0]) * 1e5
    assert Q @ (Q.T @ difference) == pytest.approx(difference, abs=1e-9)


def test_growing_errors_are_stopped_by_a_refresh(graph, federate, monkeypatch):
    rng = np.random.default_rng(2)
    A = graph(rng, 100, 0.1, weighted=True)
    federation = federate(A, rng.integers(0, 3, 100), 3)
    start = rng.standard_normal((100, 5)) / 10
    _, calm = run(federation, "laplacian", start, 20)
    assert calm == ["expand"] * 4 + ["last"]
    monkeypatch.setattr(BlockLanczos, "_limit", lambda self: 0.0)
    solvers, modes = run(federation, "laplacian", start, 20)
    assert modes == ["expand", "refresh"] * 3 + ["expand", "last"]
    Q, Z = gathered(federation, solvers)
    L = reference.whole_operator("laplacian", A)
    assert Z * solvers[0].operator.unit == pytest.approx(L @ Q, abs=1e-11)


def test_errors_bound_the_error_of_the_images(graph, federate):
    rng = np.random.default_rng(3)
    A = graph(rng, 300, 0.02)
    federation = federate(A, rng.integers(0, 3, 300), 3, noise=1e-8)
    solvers, _ = run(federation, "laplacian", rng.standard_normal((300, 6)) / 17, 60, noise=1e-8)
    Q, Z = gathered(federation, solvers)
    L = reference.whole_operator("laplacian", A)
    errors = np.linalg.norm(Z - (L @ Q) / solvers[0].operator.unit, axis=0)
    # The error of one received column, over all nodes, is noise times the root of their number.
    assert (errors < 3 * solvers[0].errors * 1e-8 * np.sqrt(300)).all()


def test_last_block_is_narrower_when_the_block_does_not_divide_the_vectors(graph, federate):
    rng = np.random.default_rng(4)
    A = graph(rng, 60, 0.2)
    federation = federate(A, rng.integers(0, 2, 60), 2)
    start = rng.standard_normal((60, 8))
    solvers, _ = run(federation, "sym", start, 19)
    Q, _ = gathered(federation, solvers)
    whole = reference.krylov(reference.whole_operator("sym", A), start, 19)
    assert solvers[0].rounds == 4
    assert np.linalg.norm(whole.T @ Q, 2) <= 1 + 1e-12
    assert reference.capture(Q, whole) == pytest.approx(1.0, abs=1e-12)


def test_path_of_two_clients_that_hold_every_other_node(federate):
    n = 64
    A = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).tocsr()
    federation = federate(A, np.arange(n) % 2, 2)
    start = np.random.default_rng(5).standard_normal((n, 4)) / 8
    solvers = federation.solvers("block-lanczos", "laplacian", start, vectors=n)
    _, solution = federation.run(solvers, n)
    true = 2 - 2 * np.cos(np.pi * np.arange(n) / n)
    assert solution.eigenvalues == pytest.approx(true, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cora", "chameleon", "photo", "pubmed"])
def test_benchmarks_with_a_hundred_vectors(fedlap_data, federate, name):
    from fedlap_app.graphs.benchmarks import load_benchmark

    A = load_benchmark(name, directed=False).adjacency()
    rng = np.random.default_rng(0)
    n = A.shape[0]
    federation = federate(A, rng.integers(0, 10, n), 10)
    start = rng.standard_normal((n, 10)) / np.sqrt(n)
    solvers = federation.solvers("block-lanczos", "sym", start, vectors=100)
    U, solution = federation.run(solvers, 100)
    assert solvers[0].rounds == 11
    assert np.linalg.norm(U.T @ U - np.eye(100), 2) < 1e-9
    L = reference.whole_operator("sym", A)
    values, V = reference.rayleigh_ritz(L, reference.krylov(L, start, 100), 100, "smallest")
    assert solution.eigenvalues == pytest.approx(values, abs=1e-9)
    assert reference.capture(U, V) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_chameleon_with_five_hundred_vectors(fedlap_data, federate, noise):
    from fedlap_app.graphs.benchmarks import load_benchmark

    A = load_benchmark("chameleon", directed=False).adjacency()
    rng = np.random.default_rng(0)
    n = A.shape[0]
    federation = federate(A, rng.integers(0, 10, n), 10, noise=noise)
    start = rng.standard_normal((n, 10)) / np.sqrt(n)
    solvers = federation.solvers("block-lanczos", "sym", start, vectors=500, noise=noise)
    U, _ = federation.run(solvers, 100)
    assert np.linalg.norm(U.T @ U - np.eye(100), 2) < (1e-6 if noise else 1e-9)
    assert reference.capture(U, reference.eigenspace("sym", A, 100)[1]) >= 0.97
