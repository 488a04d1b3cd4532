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
        if not inputs:
            raise ConfigError(
                "the nodes have no features, which this network reads: take a method that learns "
                "from the structure, for example method = 'fedlap+'"
            )
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
        kinds = [_LAYER[spec.kind]] * (len(widths) - 1)
        self.straight = spec.dense == "last" and len(kinds) > 1
        if spec.dense != "none":
            kinds[0 if spec.dense == "first" else -1] = DenseLayer
        shapes = zip(kinds, itertools.pairwise(widths), strict=True)
        self.layers = nn.ModuleList(layer(*shape) for layer, shape in shapes)
        self.gain = nn.Parameter(torch.ones(spec.num_features, 1)) if spec.input_gain else None
        self.shift = nn.Parameter(torch.zeros(1, spec.num_features)) if spec.input_gain else None

    @property
    def first(self) -> DenseLayer:
        """The layer that reads the features."""
        return cast(DenseLayer, self.layers[0])

    def forward(self, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes, (n, classes)."""
        return self.finish(self._product(tensors, self.first.weight), tensors)

    def finish(self, product: Tensor, tensors: GraphTensors) -> Tensor:
        """Logits of all nodes from the product of the features and the first weight."""
        propagation = tensors.propagation_of(self.kind)
        first, *others = (cast(DenseLayer, layer) for layer in self.layers)
        hidden: Tensor = first(product, propagation)
        for layer in others:
            if not (self.straight and layer is others[-1]):
                hidden = functional.dropout(hidden.relu(), self.dropout, self.training)
            hidden = layer(hidden @ layer.weight, propagation)
        for _ in range(self.hops):
            hidden = propagation.times(hidden)
        return hidden

    def _product(self, tensors: GraphTensors, weight: Tensor) -> Tensor:
        """Input times weight; a gain of the features is one of the weight's rows."""
        dropout = self.input_dropout if self.training else 0.0
        if self.gain is None or self.shift is None:
            return tensors.x.times(weight, dropout)
        return tensors.x.times(self.gain * weight, dropout) + self.shift @ weight


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
