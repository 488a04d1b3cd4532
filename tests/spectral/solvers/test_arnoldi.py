import numpy as np
import pytest

from tests.spectral import reference


@pytest.fixture
def finished(graph, federate):
    rng = np.random.default_rng(0)
    A = graph(rng, 150, 0.1)
    federation = federate(A, rng.integers(0, 2, 150), 2)
    solvers = federation.solvers("arnoldi", "sym", rng.standard_normal((150, 1)), vectors=100)
    rounds = {"norm": 0, "expand": 0, "inner": 0, "last": 0}
    while not solvers[0].done:
        rounds[solvers[0].mode] += 1
        federation.round(solvers)
    return A, federation, solvers, rounds


def test_round_trips_are_those_of_the_paper(finished):
    _, _, solvers, rounds = finished
    assert rounds == {"norm": 101, "expand": 100, "inner": 5050, "last": 1}
    assert solvers[0].rounds - rounds["last"] == 5251


def test_arnoldi_relation(finished):
    """L Q = [Q q] H with H upper Hessenberg (the paper's relation)."""
    A, federation, solvers, _ = finished
    Q = np.zeros((150, 101))
    for part, solver in zip(federation.parts, solvers, strict=True):
        Q[part.nodes] = np.hstack([solver.Q, solver.r])
    H = solvers[0].H
    assert np.tril(H, -2) == pytest.approx(0)
    assert reference.whole_operator("sym", A) @ Q[:, :100] == pytest.approx(Q @ H, abs=1e-12)


def test_small_problem_is_the_symmetric_part_of_h(graph, federate):
    """While Gram-Schmidt has lost nothing, which few vectors show."""
    rng = np.random.default_rng(1)
    A = graph(rng, 100, 0.1)
    federation = federate(A, rng.integers(0, 3, 100), 3)
    solvers = federation.solvers("arnoldi", "sym", rng.standard_normal((100, 1)), vectors=10)
    federation.run(solvers, 5)
    H = solvers[0].H[:10]
    problem = solvers[0].problem()
    assert problem.gram == pytest.approx(np.eye(10), abs=1e-10)
    assert problem.ritz == pytest.approx((H + H.T) / 2, abs=1e-10)
