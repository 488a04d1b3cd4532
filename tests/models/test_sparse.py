"""Sparse products and their gradients."""

import numpy as np
import scipy.sparse
import torch

from fedlap_app.models.determinism import seeded
from fedlap_app.models.sparse import SparseMatrix


def _matrix(rows, columns, density=0.3):
    rng = np.random.default_rng(1)
    return scipy.sparse.random_array((rows, columns), density=density, rng=rng, format="csr")


def test_the_product_and_its_gradient_are_those_of_the_dense_matrix():
    matrix = _matrix(7, 5)
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    seen = torch.randn(7, 3, generator=torch.Generator().manual_seed(1))
    SparseMatrix.from_scipy(matrix).times(x).backward(seen)
    dense = torch.from_numpy(matrix.toarray()).float()
    torch.testing.assert_close(SparseMatrix.from_scipy(matrix).times(x), dense @ x)
    torch.testing.assert_close(x.grad, dense.T @ seen)


def test_finite_differences_agree_with_the_gradient():
    parts = SparseMatrix.from_scipy(_matrix(6, 4))
    double = SparseMatrix(parts.forward.double(), parts.transpose.double(), parts.order)
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda value: double.times(value).tanh(), (x,))


def test_a_gradient_with_strides_of_zero_is_taken():
    matrix = _matrix(6, 4)
    x = torch.ones(4, 2, requires_grad=True)
    SparseMatrix.from_scipy(matrix).times(x).sum().backward()
    expected = np.repeat(matrix.sum(axis=0)[:, None], 2, axis=1)
    torch.testing.assert_close(x.grad, torch.from_numpy(expected).float())


def test_a_matrix_without_entries_gives_zeros():
    product = SparseMatrix.from_scipy(scipy.sparse.csr_array((3, 2))).times(torch.ones(2, 4))
    assert torch.equal(product, torch.zeros(3, 4))


def test_dropped_entries_are_the_same_in_the_transpose():
    whole = SparseMatrix.from_scipy(_matrix(40, 50, density=1.0))
    with seeded(3):
        part = whole.dropped(0.75)
    forward, transpose = part.forward.to_dense(), part.transpose.to_dense()
    assert torch.equal(forward, transpose.T)
    kept = forward != 0
    torch.testing.assert_close(forward[kept], 4 * whole.forward.to_dense()[kept])
    # 500 of 2000 entries are kept on average, with a deviation of 19.
    assert 400 < kept.sum() < 600
