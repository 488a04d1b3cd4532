"""The prediction: the logits of a feature model and of a structure model, added."""

import torch
from torch import Tensor, nn

from fedlap_app.errors import ConfigError
from fedlap_app.learning.models import build_model
from fedlap_app.learning.specs import ModelSpec, StructureSpec
from fedlap_app.learning.structure import StructureModel, build_structure, rayleigh_quotient
from fedlap_app.learning.tensors import GraphTensors
from fedlap_app.learning.training import Objective, cross_entropy, loss_of


class TwoBranches(nn.Module):
    """A feature model and a structure model, their logits added.

    Parameters
    ----------
    features : nn.Module | None
        Reads the tensors; None: the structure alone.
    structure : nn.Module
        Reads structure features.
    """

    def __init__(self, features: nn.Module | None, structure: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.structure = structure

    def structure_logits(self, tensors: GraphTensors) -> Tensor:
        """Logits of the structure model."""
        raise TypeError(f"{type(self).__name__} does not say what its structure model reads")

    def branches(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits of the structure model and, where there is one, of the feature model."""
        structure = self.structure_logits(tensors)
        return [structure] if self.features is None else [structure, self.features(tensors)]

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        return torch.stack(self.branches(tensors)).sum(dim=0)


class FusedModel(TwoBranches):
    """f(X, E, v) + g(U_v W)."""

    structure: StructureModel

    def structure_logits(self, tensors: GraphTensors) -> Tensor:
        """g(U_v W) of all nodes."""
        if tensors.basis is None:
            raise ConfigError("The model reads a spectral basis, but none is attached to the data.")
        logits: Tensor = self.structure(tensors.basis)
        return logits


def build_fused(features: ModelSpec | None, structure: StructureSpec, seed: int) -> FusedModel:
    """Make both models on the CPU; the same seed gives the same weights everywhere."""
    model = None if features is None else build_model(features, seed)
    return FusedModel(model, build_structure(structure, seed))


def branch_cross_entropy(model: TwoBranches, tensors: GraphTensors, branch: float) -> Tensor:
    """Mean cross-entropy, plus `branch` times that of each model alone.

    Without it the branch that fits the labels first leaves nothing to learn to the other.
    """
    branches = model.branches(tensors)
    loss = loss_of(torch.stack(branches).sum(dim=0), tensors)
    if branch and len(branches) > 1:
        loss = loss + branch * sum(loss_of(logits, tensors) for logits in branches)
    return loss


def smooth_cross_entropy(strength: float, branch: float = 0.0) -> Objective:
    """`branch_cross_entropy` plus `strength` times the Rayleigh quotient of W."""

    def objective(model: nn.Module, tensors: GraphTensors) -> Tensor:
        if not isinstance(model, FusedModel):
            return cross_entropy(model, tensors)
        loss = branch_cross_entropy(model, tensors, branch)
        if tensors.eigenvalues is not None and strength:
            loss = loss + strength * rayleigh_quotient(model.structure.W, tensors.eigenvalues)
        return loss

    return objective
