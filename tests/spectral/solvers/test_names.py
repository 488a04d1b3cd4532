"""What holds for every solver."""

import io

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.errors import ConfigError
from fedlap_app.spectral.certificate import quality
from fedlap_app.spectral.operators import KINDS
from fedlap_app.spectral.solvers import SOLVERS, make_solver
from tests.spectral import reference


def gathered(federation, solvers):
    Q = np.zeros((federation.n, solvers[0].columns))
    for part, solver in zip(federation.parts, solvers, strict=True):
        Q[part.nodes] = solver.Q
    return Q


def defect(U):
    return np.linalg.norm(U.T @ U - np.eye(U.shape[1]), 2)


@settings(max_examples=50, deadline=None)
@given(
    name=st.sampled_from(sorted(SOLVERS)),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32),
    n=st.integers(2, 24),
    clients=st.sampled_from([2, 3, 5, 50]),
    block=st.integers(1, 12),
    density=st.sampled_from([0.0, 0.03, 0.1, 0.3, 0.9]),
    weighted=st.booleans(),
)
def test_full_krylov_space(graph, federate, name, kind, seed, n, clients, block, density, weighted):
    """Any graph: disconnected, with isolated nodes, smaller than the block, M > n."""
    rng = np.random.default_rng(seed)
    A = graph(rng, n, density, weighted=weighted, directed=kind == "directed")
    federation = federate(A, rng.integers(0, clients, n), clients)
    start = rng.standard_normal((n, block)) / np.sqrt(n)
    solvers = federation.solvers(name, kind, start, vectors=n + 5)
    _, solution = federation.run(solvers, n)
    L = reference.whole_operator(kind, A)
    true = np.linalg.eigvalsh(L @ np.eye(n))
    size = max(np.abs(true).max(), 1.0)
    U = gathered(federation, solvers) @ solution.Y
    assert defect(U) < 1e-6
    assert np.linalg.norm(L @ U - U * solution.eigenvalues, axis=0).max() < 1e-6 * size
    gaps = np.abs(true[:, None] - solution.eigenvalues)
    assert gaps.min(axis=1).max() < 1e-6 * size
    assert gaps.min(axis=0).max() < 1e-6 * size
    orthogonality, residual = quality(solvers[0].problem(), solution)
    assert orthogonality < 1e-6
    assert residual < 1e-6 * size


@pytest.mark.parametrize("clients", [2, 50])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "block"), [("block-lanczos", 7), ("dcgs2", 1), ("arnoldi", 1)])
def test_equal_to_the_run_on_the_whole_matrix(graph, federate, name, block, kind, clients):
    rng = np.random.default_rng(5)
    A = graph(rng, 120, 0.05, weighted=True, directed=kind == "directed")
    federation = federate(A, rng.integers(0, clients, 120), clients)
    start = rng.standard_normal((120, block)) / np.sqrt(120)
    solvers = federation.solvers(name, kind, start, vectors=30)
    _, solution = federation.run(solvers, 12)
    U = gathered(federation, solvers) @ solution.Y
    L = reference.whole_operator(kind, A)
    values, V = reference.rayleigh_ritz(L, reference.krylov(L, start, 30), 12, "smallest")
    assert solution.eigenvalues == pytest.approx(values, abs=1e-8 * solvers[0].operator.unit)
    assert reference.capture(U, V) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", ["sym", "regularised", "directed"])
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_state_saved_and_loaded_at_every_round_changes_nothing(graph, federate, name, kind):
    rng = np.random.default_rng(6)
    A = graph(rng, 25, 0.15, directed=kind == "directed")
    federation = federate(A, rng.integers(0, 3, 25), 3)
    start = rng.standard_normal((25, 4))
    vectors = 10 if name == "arnoldi" else 30
    calm, solution = federation.run(federation.solvers(name, kind, start, vectors=vectors), 6)

    solvers = federation.solvers(name, kind, start, vectors=vectors)
    while not solvers[0].done:
        federation.round(solvers)
        fresh = []
        for solver, part in zip(solvers, federation.parts, strict=True):
            file = io.BytesIO()
            np.savez(file, **solver.state())
            file.seek(0)
            again = make_solver(
                name, solver.operator, solver.settings, start[part.nodes], solver.basis
            )
            with np.load(file, allow_pickle=False) as state:
                again.restore(dict(state))
            fresh.append(again)
        solvers = fresh
    disturbed, other = federation.run(solvers, 6)
    assert (disturbed == calm).all()
    assert (other.eigenvalues == solution.eigenvalues).all()


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_contributions_can_be_asked_for_twice(graph, federate, name):
    rng = np.random.default_rng(7)
    A = graph(rng, 20, 0.3)
    federation = federate(A, rng.integers(0, 2, 20), 2)
    solvers = federation.solvers(name, "sym", rng.standard_normal((20, 3)), vectors=9)
    while not solvers[0].done:
        first, second = solvers[0].contribute(), solvers[0].contribute()
        assert (first.small == second.small).all()
        assert (first.block is None) == (second.block is None)
        if first.block is not None:
            assert (first.block == second.block).all()
        federation.round(solvers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_noise_in_every_sum(graph, federate, name, kind):
    rng = np.random.default_rng(8)
    A = graph(rng, 300, 0.03, directed=kind == "directed")
    federation = federate(A, rng.integers(0, 5, 300), 5, noise=1e-8)
    start = rng.standard_normal((300, 10)) / np.sqrt(300)
    solvers = federation.solvers(name, kind, start, vectors=40, noise=1e-8)
    _, solution = federation.run(solvers, 40)
    U = gathered(federation, solvers) @ solution.Y
    assert defect(U) < 1e-6
    orthogonality, _ = quality(solvers[0].problem(), solution)
    assert defect(U) < 2 * orthogonality < 2e-6


@pytest.mark.parametrize("name", sorted(SOLVERS))
@pytest.mark.parametrize(
    "A",
    [
        sp.csr_array((6, 6)),
        sp.csr_array(np.ones((30, 30)) - np.eye(30)),
        sp.block_diag([np.ones((2, 2)) - np.eye(2)] * 8 + [np.zeros((3, 3))]).tocsr(),
    ],
    ids=["no edges", "complete", "pairs and isolated nodes"],
)
def test_stops_at_an_invariant_subspace(federate, name, A):
    n = A.shape[0]
    rng = np.random.default_rng(9)
    federation = federate(A, rng.integers(0, 3, n), 3)
    start = rng.standard_normal((n, 3)) / np.sqrt(n)
    solvers = federation.solvers(name, "laplacian", start, vectors=n)
    federation.run(solvers, n)
    distinct = np.unique(np.round(np.linalg.eigvalsh(sp.csgraph.laplacian(A).toarray()), 6))
    assert solvers[0].columns <= len(distinct) * (3 if name == "block-lanczos" else 1)


def test_unknown_solver_is_refused():
    with pytest.raises(ConfigError, match="power"):
        make_solver("power", None, None, None)
