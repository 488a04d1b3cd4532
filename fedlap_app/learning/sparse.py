"""A constant sparse matrix on a device, with a fast and deterministic backward pass."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor


def _to_torch(matrix: scipy.sparse.csr_array, device: torch.device) -> Tensor:
    with warnings.catch_warnings():
        # "Sparse CSR tensor support is in beta state", once a process.
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            size=matrix.shape,
            device=device,
            check_invariants=False,
        )


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
    """A sparse matrix and its transpose, both in CSR form."""

    forward: Tensor
    transpose: Tensor

    @classmethod
    def from_scipy(
        cls, matrix: scipy.sparse.sparray, device: torch.device | str = "cpu"
    ) -> "SparseMatrix":
        """Copy a scipy matrix to the device as 32-bit floats."""
        device = torch.device(device)
        rows = scipy.sparse.csr_array(matrix)
        columns = scipy.sparse.csr_array(rows.T)
        for part in (rows, columns):
            part.sum_duplicates()
        return cls(_to_torch(rows, device), _to_torch(columns, device))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.forward.shape
        return rows, columns

    def times(self, dense: Tensor) -> Tensor:
        """Multiply with a dense matrix; the gradient flows to the dense matrix."""
        product: Tensor = _Product.apply(self.forward, self.transpose, dense)  # type: ignore[no-untyped-call]
        return product
