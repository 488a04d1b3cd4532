"""The structure model g: of a node's structure features S_v (FedLap) or U_v W (FedLap+).

W maps a node's row of the spectral basis to structure features; the Rayleigh quotient of W keeps
the weight on the smooth end of the spectrum (paper, equation `rayleigh_spect`).
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.models.determinism import seeded
from fedlap_app.models.specs import StructureSpec
from fedlap_app.models.start import linear, normal

START_SPREAD = 0.05


class StructureHead(nn.Module):
    """Linear layers on normalised structure features, whose activation comes first."""

    def __init__(self, spec: StructureSpec) -> None:
        super().__init__()
        self.spec = spec
        self.norm = nn.LayerNorm(spec.width) if spec.norm else None
        widths = (spec.width, *spec.hidden, spec.num_classes)
        self.layers = nn.ModuleList(itertools.starmap(linear, itertools.pairwise(widths)))

    def forward(self, features: Tensor) -> Tensor:
        """Logits of all nodes, (n, classes), from their structure features (n, width)."""
        hidden = _ACTIVATION[self.spec.activation](features)
        if self.norm is not None:
            hidden = self.norm(hidden)
        for number, layer in enumerate(self.layers):
            hidden = hidden if number == 0 else hidden.relu()
            hidden = layer(functional.dropout(hidden, self.spec.dropout, self.training))
        return hidden


class StructureModel(StructureHead):
    """The same on U W, with W learned."""

    def __init__(self, spec: StructureSpec) -> None:
        start = normal(START_SPREAD, spec.rank, spec.width)
        super().__init__(spec)
        self.W = nn.Parameter(start)

    def forward(self, basis: Tensor) -> Tensor:
        """Logits of all nodes, (n, classes), from their rows of the basis (n, rank)."""
        weights = self.W / self.W.norm() if self.spec.unit_norm else self.W
        return super().forward(basis @ weights)


def _same(values: Tensor) -> Tensor:
    return values


_ACTIVATION = {"relu": torch.relu, "tanh": torch.tanh, "none": _same}


def rayleigh_quotient(W: Tensor, eigenvalues: Tensor) -> Tensor:
    """Sum of eigenvalue_j ||w_j||^2 over sum of ||w_j||^2, w_j the rows of W that have one."""
    squares = W[: len(eigenvalues)].square().sum(dim=1)
    return (eigenvalues * squares).sum() / squares.sum()


def build_structure(spec: StructureSpec, seed: int) -> StructureModel:
    """Make a structure model on the CPU; the same seed gives the same weights everywhere."""
    with seeded(seed):
        return StructureModel(spec)
