"""FedLap+'s prediction: the logits of a feature model and of the structure model, added."""

from torch import Tensor, nn

from fedlap_app.errors import ConfigError
from fedlap_app.learning.models import build_model
from fedlap_app.learning.specs import ModelSpec, StructureSpec
from fedlap_app.learning.structure import StructureModel, build_structure, rayleigh_quotient
from fedlap_app.learning.tensors import GraphTensors
from fedlap_app.learning.training import Objective, cross_entropy


class FusedModel(nn.Module):
    """f(X, E, v) + g(U_v W); without a feature model the structure alone."""

    def __init__(self, features: nn.Module | None, structure: StructureModel) -> None:
        super().__init__()
        self.features = features
        self.structure = structure

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        if tensors.basis is None:
            raise ConfigError("The model reads a spectral basis, but none is attached to the data.")
        logits: Tensor = self.structure(tensors.basis)
        return logits if self.features is None else logits + self.features(tensors)


def build_fused(features: ModelSpec | None, structure: StructureSpec, seed: int) -> FusedModel:
    """Make both models on the CPU; the same seed gives the same weights everywhere."""
    model = None if features is None else build_model(features, seed)
    return FusedModel(model, build_structure(structure, seed))


def smooth_cross_entropy(strength: float) -> Objective:
    """Mean cross-entropy plus `strength` times the Rayleigh quotient of W."""

    def objective(model: nn.Module, tensors: GraphTensors) -> Tensor:
        loss = cross_entropy(model, tensors)
        if not isinstance(model, FusedModel) or tensors.eigenvalues is None or not strength:
            return loss
        return loss + strength * rayleigh_quotient(model.structure.W, tensors.eigenvalues)

    return objective
