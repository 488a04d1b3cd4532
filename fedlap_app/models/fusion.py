"""The prediction: the logits of a feature model and of a structure model, added."""

import torch
from torch import Tensor, nn

from fedlap_app.errors import ConfigError
from fedlap_app.models.evaluation import Evaluation, evaluate, score
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import (
    FEATURE_WEIGHT,
    FEATURE_WEIGHTS,
    FEATURES_ALONE,
    ModelSpec,
    StructureSpec,
)
from fedlap_app.models.structure import StructureModel, build_structure, rayleigh_quotient
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import Objective, cross_entropy, loss_of


class TwoBranches(nn.Module):
    """A feature model and a structure model, their logits added.

    Parameters
    ----------
    features : nn.Module | None
        Reads the tensors; None: the structure alone.
    structure : nn.Module
        Reads structure features.
    weighted : bool (default: False)
        Whether predictions weight the feature model; the weight is no parameter but travels with
        them, so that whoever holds the model predicts the same.
    """

    feature_weight: Tensor | None

    def __init__(
        self, features: nn.Module | None, structure: nn.Module, *, weighted: bool = False
    ) -> None:
        super().__init__()
        self.features = features
        self.structure = structure
        used = weighted and features is not None
        self.register_buffer(FEATURE_WEIGHT, torch.ones(1) if used else None)

    def structure_logits(self, tensors: GraphTensors) -> Tensor:
        """Logits of the structure model."""
        raise TypeError(f"{type(self).__name__} does not say what its structure model reads")

    def branches(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits of the structure model and, where there is one, of the feature model."""
        structure = self.structure_logits(tensors)
        return [structure] if self.features is None else [structure, self.features(tensors)]

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        return self.fuse(self.branches(tensors), self.feature_weight)

    def fuse(self, branches: list[Tensor], weight: Tensor | float | None) -> Tensor:
        """Add the logits or, with a weight of the feature model, the log-probabilities."""
        if weight is None or len(branches) == 1:
            return torch.stack(branches).sum(dim=0)
        structure, features = (logits.log_softmax(dim=1) for logits in branches)
        if float(weight) == FEATURES_ALONE:
            return features
        return structure + weight * features


class FusedModel(TwoBranches):
    """f(X, E, v) + g(U_v W)."""

    structure: StructureModel

    def structure_logits(self, tensors: GraphTensors) -> Tensor:
        """g(U_v W) of all nodes."""
        if tensors.basis is None:
            raise ConfigError("The model reads a spectral basis, but none is attached to the data.")
        logits: Tensor = self.structure(tensors.basis)
        return logits


def build_fused(
    features: ModelSpec | None, structure: StructureSpec, seed: int, *, weighted: bool = False
) -> FusedModel:
    """Make both models on the CPU; the same seed gives the same weights everywhere."""
    model = None if features is None else build_model(features, seed)
    return FusedModel(model, build_structure(structure, seed), weighted=weighted)


def evaluate_weights(model: nn.Module, tensors: GraphTensors, *, bins: int = 0) -> list[Evaluation]:
    """Scores with each of `FEATURE_WEIGHTS`; those of the model as it is when it has no weight."""
    if not isinstance(model, TwoBranches) or model.feature_weight is None:
        return [evaluate(model, tensors, bins=bins)]
    model.eval()
    with torch.inference_mode():
        branches = model.branches(tensors)
        choices = [model.fuse(branches, weight) for weight in FEATURE_WEIGHTS]
        found = [logits.log_softmax(dim=1).cpu().numpy() for logits in choices]
    return [score(each, tensors, bins=bins) for each in found]


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
