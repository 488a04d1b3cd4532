"""A GCN whose weights are multiplied with masks, and what it says of a graph of random numbers."""

import itertools
from functools import lru_cache
from typing import cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.models.determinism import seeded
from fedlap_app.models.features import DenseFeatures, Features
from fedlap_app.models.networks import DenseLayer, GCNLayer
from fedlap_app.models.propagation import Links, symmetric
from fedlap_app.models.sparse import Propagation, SparseMatrix
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.seeds import seed_of

CLOSED = 1e-3
"""A mask's entry below this size is 0 in predictions."""
BLOCK, SHARE = 100, 0.1
"""Nodes of a block of the random graph, and the share of its pairs that are edges."""


class MaskedGCN(nn.Module):
    """GCN layers with relu and dropout after each, and a linear classifier."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.dropout, self.input_dropout = spec.dropout, spec.input_dropout
        widths = (spec.num_features, *spec.hidden)
        layers = itertools.starmap(GCNLayer, itertools.pairwise(widths))
        self.layers = nn.ModuleList([*layers, DenseLayer(widths[-1], spec.num_classes)])
        shapes = [cast(DenseLayer, layer).weight.shape for layer in self.layers]
        # Called as `MASKS` says, by which the server tells them from weights.
        self.masks = nn.ParameterList(torch.ones(shape) for shape in shapes)

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        hidden = self._open(self.embedded(tensors.x, tensors.propagation))
        logits: Tensor = self._layer(-1)(hidden @ self._weight(-1), tensors.propagation)
        return logits

    def embedded(self, x: Features, propagation: Propagation) -> Tensor:
        """What the last GCN layer gives, before its relu."""
        dropout = self.input_dropout if self.training else 0.0
        hidden: Tensor = self._layer(0)(x.times(self._weight(0), dropout), propagation)
        for at in range(1, len(self.layers) - 1):
            hidden = self._layer(at)(self._open(hidden) @ self._weight(at), propagation)
        return hidden

    def _open(self, hidden: Tensor) -> Tensor:
        return functional.dropout(hidden.relu(), self.dropout, self.training)

    def _layer(self, at: int) -> DenseLayer:
        return cast(DenseLayer, self.layers[at])

    def _weight(self, at: int) -> Tensor:
        mask = self.masks[at]
        if not self.training:
            mask = torch.where(mask.abs() < CLOSED, 0.0, mask)
        masked: Tensor = self._layer(at).weight * mask
        return masked


def build_masked(spec: ModelSpec, seed: int) -> MaskedGCN:
    """Make a model on the CPU; the same seed gives the same weights on every machine."""
    with seeded(seed):
        return MaskedGCN(spec)


def embedding(model: nn.Module, features: int, blocks: int, seed: int) -> NDArray[np.float32]:
    """Mean embedding of the random graph's nodes."""
    assert isinstance(model, MaskedGCN)
    inputs, propagation = _random_graph(features, blocks, seed, model.masks[0].device)
    model.eval()
    with torch.inference_mode():
        found: Tensor = model.embedded(inputs, propagation)
        mean: NDArray[np.float32] = found.mean(dim=0).cpu().numpy()
    return mean


@lru_cache(maxsize=2)
def _random_graph(
    features: int, blocks: int, seed: int, device: torch.device
) -> tuple[DenseFeatures, SparseMatrix]:
    """Normal features, and the propagation over blocks of random edges."""
    draw = np.random.default_rng(seed_of(seed, "proxy"))
    x = draw.standard_normal((blocks * BLOCK, features), dtype=np.float32)
    upper = [np.triu(draw.random((BLOCK, BLOCK)) < SHARE, k=1) for _ in range(blocks)]
    edges = sp.block_diag([pairs | pairs.T for pairs in upper])
    links = symmetric(Links(sp.csr_array(edges, dtype=np.float64)))
    inputs = DenseFeatures(torch.from_numpy(x).to(device), torch.zeros((), device=device))
    return inputs, SparseMatrix.from_scipy(links.own, device)
