"""A model that reads sums over the neighbours' features, alone and beside others."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedlap_app.errors import ConfigError
from fedlap_app.models.features import features_on
from fedlap_app.models.fusion import FusedModel
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import FEATURE_WEIGHT, FEATURES_ALONE, ModelSpec
from fedlap_app.models.structure import StructureModel
from fedlap_app.models.tensors import GraphTensors


class SummedModel(nn.Module):
    """An MLP on the sums over neighbours."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        if tensors.sums is None:
            raise ConfigError("The model reads sums over neighbours, but the data has none.")
        logits: Tensor = self.layers(replace(tensors, x=tensors.sums, kind="decoupled"))
        return logits


class SummedBeside(FusedModel):
    """f(X, E, v) + g(U_v W) + c(sums over neighbours)."""

    def __init__(
        self,
        features: nn.Module | None,
        structure: StructureModel,
        sums: SummedModel,
        *,
        weighted: bool,
    ) -> None:
        super().__init__(features, structure)
        self.sums = sums
        self.register_buffer(FEATURE_WEIGHT, torch.ones(1) if weighted else None)

    def branches(self, tensors: GraphTensors) -> list[Tensor]:
        """Logits of the structure model, of the feature model if there is one, of the sums."""
        return [*super().branches(tensors), self.sums(tensors)]

    def fuse(self, branches: list[Tensor], weight: Tensor | float | None) -> Tensor:
        """Add the logits, or the log-probabilities with one weight of all that read features."""
        if weight is None:
            return super().fuse(branches, weight)
        structure, *others = (logits.log_softmax(dim=1) for logits in branches)
        features = torch.stack(others).sum(dim=0)
        return features if float(weight) == FEATURES_ALONE else structure + weight * features


def build_summed(spec: ModelSpec, seed: int) -> SummedModel:
    """Make a model as wide as that of a spec, on the CPU."""
    dense = replace(spec, kind="decoupled", hops=0, relay=False, dense="none")
    return SummedModel(build_model(dense, seed))


def with_sums(tensors: GraphTensors, sums: NDArray[np.floating], normalise: bool) -> GraphTensors:
    """The same data with sums over neighbours beside the features."""
    values = sums.astype(np.float32)
    return replace(tensors, sums=features_on(values, normalise=normalise, device=tensors.device))
