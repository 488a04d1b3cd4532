"""A constant sparse matrix on a device, with a fast and deterministic backward pass."""

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch.nn import functional


class Propagation(Protocol):
    """What nodes hear of each other."""

    def times(self, dense: Tensor) -> Tensor:
        """Multiply with a dense matrix; the gradient flows to the dense matrix."""


def _csr(crow: Tensor, column: Tensor, values: Tensor, size: tuple[int, int]) -> Tensor:
    return torch.sparse_csr_tensor(crow, column, values, size=size, check_invariants=False)


def _to_torch(matrix: scipy.sparse.csr_array, device: torch.device) -> Tensor:
    parts = (
        torch.from_numpy(matrix.indptr.astype(np.int64)).to(device),
        torch.from_numpy(matrix.indices.astype(np.int64)).to(device),
        torch.from_numpy(matrix.data.astype(np.float32)).to(device),
    )
    with warnings.catch_warnings():
        # "Sparse CSR tensor support is in beta state", once a process.
        warnings.simplefilter("ignore")
        return _csr(*parts, matrix.shape)


class _Product(torch.autograd.Function):
    """``matrix @ dense``; torch's own backward would transpose the matrix in every step."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx, matrix: Tensor, transpose: Tensor, dense: Tensor
    ) -> Tensor:
        ctx.transpose = transpose  # type: ignore[attr-defined]
        return matrix @ dense

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, *grad_outputs: Tensor
    ) -> tuple[None, None, Tensor]:
        (grad,) = grad_outputs
        return None, None, ctx.transpose @ grad.contiguous()  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix and its transpose, both in CSR form.

    ``order`` gives the values of the transpose: ``forward.values()[order]``.
    """

    forward: Tensor
    transpose: Tensor
    order: Tensor

    @classmethod
    def from_scipy(
        cls, matrix: scipy.sparse.sparray, device: torch.device | str = "cpu"
    ) -> "SparseMatrix":
        """Copy a scipy matrix to the device as 32-bit floats."""
        device = torch.device(device)
        rows = scipy.sparse.csr_array(matrix, copy=True)
        rows.sum_duplicates()
        numbered = (np.arange(rows.nnz), rows.indices, rows.indptr)
        columns = scipy.sparse.csr_array(scipy.sparse.csr_array(numbered, shape=rows.shape).T)
        order = torch.from_numpy(columns.data.astype(np.int64)).to(device)
        columns.data = rows.data[columns.data]
        return cls(_to_torch(rows, device), _to_torch(columns, device), order)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.forward.shape
        return rows, columns

    def times(self, dense: Tensor) -> Tensor:
        """Multiply with a dense matrix; the gradient flows to the dense matrix."""
        product: Tensor = _Product.apply(self.forward, self.transpose, dense)  # type: ignore[no-untyped-call]
        return product

    def rows(self, numbers: Tensor) -> Tensor:
        """Some rows as a dense matrix."""
        chosen = torch.zeros(self.shape[0], len(numbers), device=numbers.device)
        chosen[numbers, torch.arange(len(numbers), device=numbers.device)] = 1.0
        found: Tensor = (self.transpose @ chosen).T
        return found

    def dropped(self, probability: float) -> "SparseMatrix":
        """Drop each entry with a probability and scale up the others."""
        values = functional.dropout(self.forward.values(), probability)
        rows, columns = self.forward, self.transpose
        return SparseMatrix(
            _csr(rows.crow_indices(), rows.col_indices(), values, self.shape),
            _csr(
                columns.crow_indices(), columns.col_indices(), values[self.order], self.shape[::-1]
            ),
            self.order,
        )


@dataclass(frozen=True, eq=False)
class RelayedMatrix:
    """``own + back @ relay``, whose product would have far more entries than its factors."""

    own: SparseMatrix
    back: SparseMatrix
    relay: SparseMatrix

    def times(self, dense: Tensor) -> Tensor:
        """Multiply with a dense matrix; the gradient flows to the dense matrix."""
        return self.own.times(dense) + self.back.times(self.relay.times(dense))
