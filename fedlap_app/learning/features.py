"""Node features on a device, dense or sparse, already normalised."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedlap_app.learning.sparse import SparseMatrix

LAYER_NORM_EPSILON = 1e-5
# With more entries than this a dense product is as fast (measured with 64 and 128 columns).
SPARSE_DENSITY = 0.05


class Features(Protocol):
    """What a first layer needs of the features."""

    def times(self, weight: Tensor) -> Tensor:
        """Multiply the (n, d) features with a (d, h) weight."""


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """Features as one dense matrix."""

    x: Tensor

    def times(self, weight: Tensor) -> Tensor:
        """Multiply the (n, d) features with a (d, h) weight."""
        return self.x @ weight


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """Features as ``matrix - shift 1'``: normalised rows that keep their zeros implicit."""

    matrix: SparseMatrix
    shift: Tensor | None

    def times(self, weight: Tensor) -> Tensor:
        """Multiply the (n, d) features with a (d, h) weight."""
        product = self.matrix.times(weight)
        return product if self.shift is None else product - self.shift * weight.sum(dim=0)


def features_on(
    features: NDArray[np.float32] | scipy.sparse.csr_array,
    *,
    normalise: bool,
    device: torch.device,
) -> Features:
    """Bring features to a device, each row normalised as LayerNorm does (without gain and bias)."""
    if isinstance(features, np.ndarray):
        return _dense(features, normalise, device)
    if features.nnz > SPARSE_DENSITY * features.shape[0] * features.shape[1]:
        return _dense(features.toarray(), normalise, device)
    if not normalise:
        return SparseFeatures(SparseMatrix.from_scipy(features, device), None)
    width = features.shape[1]
    wide = scipy.sparse.csr_array(features, dtype=np.float64)
    mean = wide.sum(axis=1) / width
    variance = (wide * wide).sum(axis=1) / width - mean**2
    scale = 1.0 / np.sqrt(np.maximum(variance, 0.0) + LAYER_NORM_EPSILON)
    matrix = SparseMatrix.from_scipy(scipy.sparse.diags_array(scale) @ wide, device)
    shift = torch.from_numpy((mean * scale).astype(np.float32)).to(device).unsqueeze(1)
    return SparseFeatures(matrix, shift)


def _dense(values: NDArray[np.float32], normalise: bool, device: torch.device) -> DenseFeatures:
    # A copy: the arrays of a Subgraph are read-only.
    x = torch.from_numpy(np.array(values, dtype=np.float32)).to(device)
    if normalise and x.shape[1] > 0:
        x = torch.nn.functional.layer_norm(x, (x.shape[1],), eps=LAYER_NORM_EPSILON)
    return DenseFeatures(x)
