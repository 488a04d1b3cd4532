"""The feature models: GraphSAGE, GCN and an MLP followed by propagation."""

import copy
import itertools
import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import handed
from fedlap_app.models.determinism import seeded
from fedlap_app.models.sparse import Propagation
from fedlap_app.models.specs import Kind, ModelSpec
from fedlap_app.models.start import uniform
from fedlap_app.models.tensors import GraphTensors


class DenseLayer(nn.Module):
    """Adds a bias to the product of input and weight.

    The product itself is the caller's, since the first input may be sparse. The weight is stored
    (inputs, outputs): a sparse product reads it row by row.
    """

    products = 1

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(inputs)
        self.weight = nn.Parameter(uniform(bound, inputs, self.products * outputs))
        self.bias = nn.Parameter(uniform(bound, outputs))

    def forward(self, product: Tensor, propagation: Propagation) -> Tensor:
        """Finish the layer from ``input @ weight``."""
        return product + self.bias


class GCNLayer(DenseLayer):
    """Propagates the product, which equals propagating the input and is narrower."""

    def forward(self, product: Tensor, propagation: Propagation) -> Tensor:
        """Finish the layer from ``input @ weight``."""
        return propagation.times(product) + self.bias


class SAGELayer(DenseLayer):
    """Adds the neighbours' mean (left half of the weight) to the node's own part (right half)."""

    products = 2

    def forward(self, product: Tensor, propagation: Propagation) -> Tensor:
        """Finish the layer from ``input @ weight``."""
        neighbours, own = product.chunk(2, dim=1)
        return propagation.times(neighbours.contiguous()) + own + self.bias


_LAYER: dict[Kind, type[DenseLayer]] = {
    "sage": SAGELayer,
    "gcn": GCNLayer,
    "decoupled": DenseLayer,
}


class FeatureModel(nn.Module):
    """Layers with relu and dropout between them, then ``hops`` propagation steps."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.kind = spec.kind
        self.dropout = spec.dropout
        self.input_dropout = spec.input_dropout
        self.hops = spec.hops if spec.kind == "decoupled" else 0
        widths = (spec.num_features, *spec.hidden, spec.num_classes)
        layer = _LAYER[spec.kind]
        self.layers = nn.ModuleList(itertools.starmap(layer, itertools.pairwise(widths)))

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        if tensors.kind != self.kind:
            raise ConfigError(
                f"The model is {self.kind!r} and the tensors are for {tensors.kind!r}; "
                "build both from one ModelSpec."
            )
        first, *others = (cast(DenseLayer, layer) for layer in self.layers)
        product = tensors.x.times(first.weight, self.input_dropout if self.training else 0.0)
        hidden: Tensor = first(product, tensors.propagation)
        for layer in others:
            hidden = functional.dropout(hidden.relu(), self.dropout, self.training)
            hidden = layer(hidden @ layer.weight, tensors.propagation)
        for _ in range(self.hops):
            hidden = tensors.propagation.times(hidden)
        return hidden


class Intercept(nn.Module):
    """The feature model of a graph without features: one logit a class, the same for all nodes."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(num_classes))

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        return self.bias.expand(tensors.num_nodes, -1)


def build_model(spec: ModelSpec, seed: int) -> nn.Module:
    """Make a model on the CPU; the same seed gives the same weights on every machine."""
    given = handed("model", spec.kind)
    with seeded(seed):
        if given is not None:
            return _own_model(given, spec)
        return FeatureModel(spec) if spec.num_features else Intercept(spec.num_classes)


def _own_model(given: Any, spec: ModelSpec) -> nn.Module:  # noqa: ANN401 - whatever it was
    """A network that was handed over, or what makes it."""
    if isinstance(given, nn.Module):
        return copy.deepcopy(given)
    made = given(spec.num_features, spec.num_classes)
    if not isinstance(made, nn.Module):
        raise ConfigError(
            f"the model {spec.kind} gave {type(made).__name__} where a torch.nn.Module was "
            "expected: hand over a network, or what makes one of (features, classes)"
        )
    return made
