"""FedLap's prediction with learned structure features: f(X, E, v) + g(S_v).

A model holds one row t for each internal node and external neighbour of its organisation. Only
the direction of a row counts: S_v = sqrt(d_v) t_v / ||t_v||, so that tr(S' S) is constant and the
regulariser of the whole graph is the mean of the organisations' own ones, weighted by tr(S_i' S_i).
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.errors import ConfigError
from fedlap_app.models.determinism import seeded
from fedlap_app.models.fusion import TwoBranches, branch_cross_entropy
from fedlap_app.models.networks import build_model
from fedlap_app.models.smoothness import LaplacianShare
from fedlap_app.models.specs import ModelSpec, StructureSpec
from fedlap_app.models.structure import StructureHead
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import Objective, cross_entropy


class LearnedRows(nn.Module):
    """What models with learned rows have in common."""

    rows: nn.Parameter

    def directions(self) -> Tensor:
        """Rows of length one."""
        return functional.normalize(self.rows, dim=1)

    def structure_features(self, tensors: GraphTensors) -> Tensor:
        """S_v of all internal nodes."""
        return _share(tensors).features(self.directions())

    def rayleigh(self, tensors: GraphTensors) -> Tensor:
        """tr(S_i' L_i S_i) / tr(S_i' S_i) of one organisation."""
        share = _share(tensors)
        return share.roughness(self.directions()) / share.volume()


class RowModel(TwoBranches, LearnedRows):
    """f(X, E, v) + g(S_v) with learned rows."""

    structure: StructureHead

    learns_unlabelled = True  # the regulariser moves rows where no node has a label

    def __init__(
        self,
        features: nn.Module | None,
        structure: StructureHead,
        held: int,
        *,
        weighted: bool = False,
    ) -> None:
        super().__init__(features, structure, weighted=weighted)
        self.rows = nn.Parameter(torch.zeros(held, structure.spec.width))

    def structure_logits(self, tensors: GraphTensors) -> Tensor:
        """g(S_v) of all internal nodes."""
        logits: Tensor = self.structure(self.structure_features(tensors))
        return logits


def build_row_model(
    features: ModelSpec | None,
    structure: StructureSpec,
    seed: int,
    held: int,
    *,
    weighted: bool = False,
) -> RowModel:
    """Make a model for `held` rows on the CPU; the same seed gives the same weights everywhere."""
    model = None if features is None else build_model(features, seed)
    with seeded(seed):
        return RowModel(model, StructureHead(structure), held, weighted=weighted)


def smooth_rows(strength: float, branch: float = 0.0) -> Objective:
    """`branch_cross_entropy` plus `strength` times the organisation's own regulariser."""

    def objective(model: nn.Module, tensors: GraphTensors) -> Tensor:
        if not isinstance(model, RowModel):
            return cross_entropy(model, tensors)
        smoothness = strength * rayleigh_share(model, tensors)
        if not len(tensors.splits["train"]):
            return smoothness
        return branch_cross_entropy(model, tensors, branch) + smoothness

    return objective


def rayleigh_share(model: LearnedRows, tensors: GraphTensors) -> Tensor:
    """tr(S_i' L_i S_i) / tr(S_i' S_i) of one organisation."""
    return model.rayleigh(tensors)


def _share(tensors: GraphTensors) -> LaplacianShare:
    if tensors.share is None:
        raise ConfigError("The model reads learned rows, but the data comes without its edges.")
    return tensors.share
