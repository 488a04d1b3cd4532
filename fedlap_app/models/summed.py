"""A model that reads sums over the neighbours' features, and one that stands beside another."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from fedlap_app.errors import ConfigError
from fedlap_app.models.features import features_on
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import ModelSpec
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


class Beside(nn.Module):
    """Two models whose logits are added."""

    def __init__(self, one: nn.Module, other: nn.Module) -> None:
        super().__init__()
        self.one, self.other = one, other

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        logits: Tensor = self.one(tensors) + self.other(tensors)
        return logits


def build_summed(spec: ModelSpec, seed: int) -> SummedModel:
    """Make a model as wide as that of a spec, on the CPU."""
    dense = replace(spec, kind="decoupled", hops=0, relay=False, dense="none")
    return SummedModel(build_model(dense, seed))


def with_sums(tensors: GraphTensors, sums: NDArray[np.floating], normalise: bool) -> GraphTensors:
    """The same data with sums over neighbours beside the features."""
    values = sums.astype(np.float32)
    return replace(tensors, sums=features_on(values, normalise=normalise, device=tensors.device))
