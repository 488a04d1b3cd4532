import numpy as np
import pytest

from fedlap_app.errors import DataError
from fedlap_app.spectral.certificate import Certificate, quality
from fedlap_app.spectral.ritz import SmallProblem, SmallSolution, solve_small


def small_problem(unit=1.0, noise=0.0):
    rng = np.random.default_rng(0)
    L = rng.standard_normal((30, 30))
    L = L + L.T
    Q = np.linalg.qr(rng.standard_normal((30, 8)))[0]
    Z = L @ Q / unit
    return L, Q, SmallProblem(Q.T @ Q, (Q.T @ Z + Z.T @ Q) / 2, Z.T @ Z, unit, noise)


@pytest.mark.parametrize("unit", [1.0, 16.0])
def test_residual_and_orthogonality_without_a_further_product(unit):
    L, Q, problem = small_problem(unit)
    solution = solve_small(problem, 5)
    U = Q @ solution.Y
    orthogonality, residual = quality(problem, solution)
    assert orthogonality < 1e-13
    true = np.linalg.norm(L @ U - U * solution.eigenvalues, axis=0).max()
    assert residual == pytest.approx(true, rel=1e-9)


def test_lost_orthogonality_is_seen():
    _, Q, problem = small_problem()
    Y = np.eye(8)[:, :2]
    Y[0, 1] = 1e-3
    orthogonality, _ = quality(problem, SmallSolution(Y, np.zeros(2)))
    true = np.linalg.norm(np.eye(2) - (Q @ Y).T @ (Q @ Y), 2)
    assert orthogonality == pytest.approx(true, rel=1e-9)


def test_noise_of_the_sums_is_counted():
    _, _, problem = small_problem(noise=1e-8)
    orthogonality, _ = quality(problem, solve_small(problem, 5))
    assert 1e-8 < orthogonality < 1e-6


def test_json_round_trip():
    certificate = Certificate(1e-15, 0.1, 100, 50, 13, 1000, 2000, 1.5)
    assert Certificate.from_json(certificate.to_json()) == certificate
    with pytest.raises(DataError, match="rank"):
        Certificate.from_json('{"orthogonality": 1, "residual_max": 1, "vectors": 1}')
    with pytest.raises(DataError, match="read"):
        Certificate.from_json("no json")
