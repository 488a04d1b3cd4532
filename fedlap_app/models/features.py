"""Node features on a device, dense or sparse, already normalised."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedlap_app.models.sparse import SparseMatrix

LAYER_NORM_EPSILON = 1e-5
# With more entries than this a dense product is as fast (measured with 64 and 128 columns).
SPARSE_DENSITY = 0.05


class Features(Protocol):
    """What a first layer needs of the features."""

    def times(self, weight: Tensor, dropout: float = 0.0) -> Tensor:
        """Multiply the (n, d) features with a (d, h) weight; drop entries of the raw features."""


@dataclass(frozen=True, eq=False)
class DenseFeatures:
    """Normalised features ``x``, and what normalising subtracted from each row."""

    x: Tensor
    shift: Tensor

    def times(self, weight: Tensor, dropout: float = 0.0) -> Tensor:
        """Multiply the (n, d) features with a (d, h) weight; drop entries of the raw features."""
        if not dropout:
            return self.x @ weight
        return (functional.dropout(self.x + self.shift, dropout) - self.shift) @ weight

    def rows(self, nodes: Tensor) -> "DenseFeatures":
        """Features of some nodes."""
        return DenseFeatures(self.x[nodes], self.shift[nodes])


@dataclass(frozen=True, eq=False)
class SparseFeatures:
    """The same as ``scaled - shift 1'``, which keeps the zeros of the raw features implicit."""

    scaled: SparseMatrix
    shift: Tensor

    def times(self, weight: Tensor, dropout: float = 0.0) -> Tensor:
        """Multiply the (n, d) features with a (d, h) weight; drop entries of the raw features."""
        x = self.scaled.dropped(dropout) if dropout else self.scaled
        return x.times(weight) - self.shift * weight.sum(dim=0)

    def rows(self, nodes: Tensor) -> DenseFeatures:
        """Features of some nodes."""
        shift = self.shift[nodes]
        return DenseFeatures(self.scaled.rows(nodes) - shift, shift)


def features_on(
    features: NDArray[np.float32] | scipy.sparse.csr_array,
    *,
    normalise: bool,
    device: torch.device,
) -> Features:
    """Bring features to a device, each row normalised as LayerNorm does (without gain and bias)."""
    nodes, width = features.shape
    scale, mean = np.ones(nodes), np.zeros(nodes)
    if normalise and width > 0:
        mean, variance = _moments(features)
        scale = 1.0 / np.sqrt(variance + LAYER_NORM_EPSILON)
    shift = torch.from_numpy((mean * scale).astype(np.float32)).to(device).unsqueeze(1)
    if isinstance(features, np.ndarray) or features.nnz > SPARSE_DENSITY * nodes * width:
        dense = features if isinstance(features, np.ndarray) else features.toarray()
        normal = (scale[:, None] * (dense - mean[:, None])).astype(np.float32)
        return DenseFeatures(torch.from_numpy(normal).to(device), shift)
    scaled = scipy.sparse.diags_array(scale) @ features
    return SparseFeatures(SparseMatrix.from_scipy(scaled, device), shift)


def _moments(
    features: NDArray[np.float32] | scipy.sparse.csr_array,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and variance of each row, zeros included."""
    if isinstance(features, np.ndarray):
        return features.mean(axis=1, dtype=np.float64), features.var(axis=1, dtype=np.float64)
    width = features.shape[1]
    wide = scipy.sparse.csr_array(features, dtype=np.float64)
    mean = wide.sum(axis=1) / width
    centred = wide.copy()
    centred.data -= np.repeat(mean, np.diff(wide.indptr))
    # The zeros that are not stored are off by the mean, too.
    implicit = width - np.diff(wide.indptr)
    variance = ((centred * centred).sum(axis=1) + implicit * mean**2) / width
    return mean, variance
