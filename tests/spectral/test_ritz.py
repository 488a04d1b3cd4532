import numpy as np
import pytest
import scipy.linalg

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.spectral.ritz import SmallProblem, pack_upper, solve_small, unpack_upper


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    L = rng.standard_normal((30, 30))
    L = L + L.T
    Q = np.linalg.qr(rng.standard_normal((30, 8)))[0] + 1e-3 * rng.standard_normal((30, 8))
    return L, Q, SmallProblem(Q.T @ Q, Q.T @ L @ Q, Q.T @ L @ L @ Q, 1.0)


def test_ritz_pairs_are_those_of_the_generalised_problem(problem):
    L, Q, small = problem
    solution = solve_small(small, 8)
    U = Q @ solution.Y
    assert pytest.approx(np.eye(8), abs=1e-12) == U.T @ U
    assert solution.eigenvalues == pytest.approx(
        scipy.linalg.eigh(Q.T @ L @ Q, Q.T @ Q, eigvals_only=True)
    )
    assert pytest.approx(np.diag(solution.eigenvalues), abs=1e-10) == U.T @ L @ U


@pytest.mark.parametrize(
    ("keep", "key"),
    [("smallest", lambda x: x), ("largest", lambda x: -x), ("magnitude", lambda x: -abs(x))],
)
def test_keep(problem, keep, key):
    every = solve_small(problem[2], 8).eigenvalues
    kept = solve_small(problem[2], 3, keep).eigenvalues
    assert kept.tolist() == pytest.approx(sorted(every, key=key)[:3])


def test_eigenvalues_are_multiplied_by_the_unit(problem):
    small = problem[2]
    scaled = SmallProblem(small.gram, small.ritz, small.squares, 8.0)
    assert solve_small(scaled, 3).eigenvalues == pytest.approx(
        8 * solve_small(small, 3).eigenvalues
    )


def test_dependent_vectors_are_left_out(problem):
    L, Q, _ = problem
    Q = np.hstack([Q, Q[:, :2]])
    solution = solve_small(SmallProblem(Q.T @ Q, Q.T @ L @ Q, Q.T @ L @ L @ Q, 1.0), 10)
    assert solution.Y.shape == (10, 8)
    U = Q @ solution.Y
    assert pytest.approx(np.eye(8), abs=1e-10) == U.T @ U


def test_bad_settings_are_refused(problem):
    with pytest.raises(ConfigError, match="middle"):
        solve_small(problem[2], 3, "middle")
    with pytest.raises(ConfigError, match="0"):
        solve_small(problem[2], 0)
    with pytest.raises(RunError, match="noise"):
        solve_small(SmallProblem(np.zeros((2, 2)), np.eye(2), np.eye(2), 1.0), 1)


def test_upper_triangles_round_trip():
    A = np.arange(16.0).reshape(4, 4)
    A = A + A.T
    assert (unpack_upper(pack_upper(A), 4) == A).all()
