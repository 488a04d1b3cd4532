import numpy as np
import pytest

from fedlap_app.spectral import ordered


@pytest.mark.parametrize("shape", [(3, 0, 2), (1, 1, 1), (4, 7, 3), (40, 300, 20)])
def test_product_and_norm_agree_with_blas(shape):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal(shape[:2]), rng.standard_normal(shape[1:])
    assert ordered.product(A, B) == pytest.approx(A @ B, abs=1e-12)
    true = np.linalg.norm(B, 2) if B.size else 0.0
    assert true * (1 - 1e-12) <= ordered.norm(B) <= true * shape[2] ** (1 / 16) * (1 + 1e-12)


def test_order_of_the_inner_index_is_kept():
    values = np.array([1e16, 1.0, -1e16, 1.0])
    assert ordered.dot(values, np.ones(4)) == 1.0  # ((1e16 + 1) - 1e16) + 1 in this order
    large = np.tile(values, (ordered.AT_ONCE, 1))
    assert (ordered.product(large, np.ones((4, 1))) == 1.0).all()


def test_inverse_of_a_triangular_matrix():
    R = np.triu(np.random.default_rng(1).standard_normal((6, 6))) + 3 * np.eye(6)
    assert ordered.inverse_upper(R) @ R == pytest.approx(np.eye(6), abs=1e-12)


def test_cholesky_skips_dependent_columns():
    rng = np.random.default_rng(2)
    U = rng.standard_normal((50, 5))
    U[:, 2] = U[:, 0] - 2 * U[:, 1]
    factor = ordered.skipping_cholesky(U.T @ U, np.full(5, 1e-8), room=5)
    assert factor.accepted.tolist() == [0, 1, 3, 4]
    assert factor.skipped.tolist() == [2]
    assert abs(factor.left[2]) < 1e-10
    R = factor.R[:, factor.accepted]
    assert np.tril(R, -1) == pytest.approx(0)
    q = U[:, factor.accepted] @ ordered.inverse_upper(R)
    assert q.T @ q == pytest.approx(np.eye(4), abs=1e-12)
    assert q @ factor.R == pytest.approx(U, abs=1e-6)


def test_cholesky_keeps_to_the_room():
    factor = ordered.skipping_cholesky(np.eye(4), np.full(4, 1e-8), room=2)
    assert factor.accepted.tolist() == [0, 1]
    assert factor.left.tolist() == [1.0, 1.0, 1.0, 1.0]
