"""Gradients of single examples, each clipped, for noise that hides a node.

An example is a node with its label, known or guessed. It reaches the model as a graph of one node
without an edge: a model that reads anything of another node fails here, whatever the settings say.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from fedlap_app.errors import ConfigError
from fedlap_app.models.determinism import seeded
from fedlap_app.models.features import DenseFeatures, Features, SparseFeatures
from fedlap_app.models.parameters import parameters_of
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import Objective

_AT_ONCE = 64  # gradients in memory


class _NoEdges:
    """Neighbours of a node that has none."""

    def times(self, dense: Tensor) -> Tensor:
        """Whoever asks for them is no model for this."""
        del dense
        raise ConfigError(
            "the model reads neighbours, so that a node's features are in the examples of others "
            "and no clipped gradient bounds it: with dp-unit = 'node' set model = 'none', or "
            "'decoupled' with hops = 0; or take dp-unit = 'organisation'"
        )


class _Loss(nn.Module):
    """What is minimised, as a function of named parameters."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self._objective = model, objective

    def forward(self, tensors: GraphTensors) -> Tensor:
        return self._objective(self.model, tensors)


@dataclass(frozen=True, eq=False)
class Examples:
    """Nodes that an organisation trains on.

    Attributes
    ----------
    nodes
        Their numbers.
    targets
        (m, classes) probabilities.
    weights
        How much each counts, at most 1.
    """

    nodes: Tensor
    targets: Tensor
    weights: Tensor

    @classmethod
    def of(cls, tensors: GraphTensors, classes: int) -> "Examples":
        """The training nodes and, by their weights, the guessed ones."""
        known = torch.from_numpy(tensors.splits["train"]).to(tensors.device)
        targets = functional.one_hot(tensors.targets[known], classes).float()
        if tensors.guesses is None:
            return cls(known, targets, torch.ones(len(known), device=tensors.device))
        guessed, weights = tensors.guesses
        others = weights.nonzero().squeeze(1)
        return cls(
            torch.cat([known, others]),
            torch.cat([targets, guessed[others]]),
            torch.cat(
                [torch.ones(len(known), device=tensors.device), weights[others].clamp(max=1)]
            ),
        )


def clipped_sum(
    model: nn.Module,
    tensors: GraphTensors,
    examples: Examples,
    *,
    objective: Objective,
    clip: float,
    seed: int,
) -> dict[str, Tensor]:
    """Sum of the gradients of all examples, none of which is longer than `clip`.

    Parameters
    ----------
    model, tensors, examples
        What is trained, and on what.
    objective
        What is minimised; every example has all of it, a regulariser too.
    clip
        Norm of the longest gradient.
    seed
        Decides dropout.
    """
    loss = _Loss(model, objective)
    parameters = {name: value.detach() for name, value in loss.named_parameters()}
    total = {
        name: torch.zeros_like(value, dtype=torch.float64) for name, value in parameters.items()
    }
    alone = replace(
        tensors,
        propagation=_NoEdges(),
        others=dict.fromkeys(tensors.others, _NoEdges()),
        labels=np.zeros(1, dtype=np.int64),
        guesses=None,
        sums=None,
        walks=None,
    )

    def of_one(
        named: dict[str, Tensor], x: Tensor, shift: Tensor, row: Tensor, y: Tensor
    ) -> Tensor:
        basis = None if tensors.basis is None else row[None]
        here = replace(alone, x=DenseFeatures(x[None], shift[None]), basis=basis, targets=y[None])
        found: Tensor = functional_call(loss, named, (here,))
        return found

    each = vmap(grad(of_one), in_dims=(None, 0, 0, 0, 0), randomness="different")
    model.train()
    with seeded(seed, tensors.device):
        with torch.no_grad():  # what a model works out once, which vmap could not
            objective(model, tensors)
        for start in range(0, len(examples.nodes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            nodes = examples.nodes[part]
            own = _own(tensors.x, nodes)
            rows = own.x[:, :0] if tensors.basis is None else tensors.basis[nodes]
            gradients = each(parameters, own.x, own.shift, rows, examples.targets[part])
            factors = _factors(list(gradients.values()), clip) * examples.weights[part]
            for name, value in gradients.items():
                total[name] += torch.tensordot(factors, value.nan_to_num(0, 0, 0).double(), 1)
    return {name.removeprefix("model."): value for name, value in total.items()}


def moved(
    model: nn.Module, gradients: dict[str, Tensor], count: int, weight_decay: float
) -> dict[str, NDArray[np.float64]]:
    """The model moved by the mean gradient, in numbers that round it once.

    Parameters
    ----------
    model
        As it was received.
    gradients
        What `clipped_sum` gave.
    count
        What the sum is divided by.
    weight_decay
        Added to the gradient as a multiple of the parameters.
    """
    found = {name: value.astype(np.float64) for name, value in parameters_of(model).items()}
    for name, value in gradients.items():
        found[name] -= value.cpu().numpy() / count + weight_decay * found[name]
    return found


def _own(features: Features, nodes: Tensor) -> DenseFeatures:
    """What the nodes themselves have of features."""
    if not isinstance(features, DenseFeatures | SparseFeatures):
        raise ConfigError(
            "the model reads more than its own node's features, which no clipped gradient bounds: "
            "take dp-unit = 'organisation'"
        )
    return features.rows(nodes)


def _factors(gradients: list[Tensor], clip: float) -> Tensor:
    """What makes each gradient as short as it may be; one that is no number counts nothing."""
    squares = torch.stack([value.double().square().flatten(1).sum(dim=1) for value in gradients])
    norms = squares.sum(dim=0).sqrt()
    factors = (clip / norms.clamp(min=clip)).clamp(max=1.0)
    return torch.where(norms.isfinite(), factors, torch.zeros_like(factors))
