"""Local training: full-batch steps on one organisation's training nodes."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import parameters_to_vector

from fedlap_app.errors import RunError
from fedlap_app.models.determinism import seeded
from fedlap_app.models.optimizer import Optimizer
from fedlap_app.models.specs import TrainSpec
from fedlap_app.models.tensors import NO_LABEL, GraphTensors

Objective = Callable[[nn.Module, GraphTensors], Tensor]


def cross_entropy(model: nn.Module, tensors: GraphTensors) -> Tensor:
    """Mean cross-entropy over the training nodes and, by their weights, the guessed ones."""
    return loss_of(model(tensors), tensors)


def loss_of(logits: Tensor, tensors: GraphTensors) -> Tensor:
    """Mean cross-entropy of given logits, as in `cross_entropy`; with class weights theirs."""
    classes = tensors.class_weights
    if tensors.softmax_twice:
        logits = logits.softmax(dim=1)
    if tensors.guesses is None:
        return functional.cross_entropy(logits, tensors.targets, classes, ignore_index=NO_LABEL)
    known = functional.cross_entropy(
        logits, tensors.targets, classes, ignore_index=NO_LABEL, reduction="sum"
    )
    targets, weights = tensors.guesses
    guessed = functional.cross_entropy(logits, targets, classes, reduction="none") @ weights
    # Balanced classes weigh as much as there are training nodes, with or without weights.
    return (known + guessed) / (len(tensors.splits["train"]) + weights.sum())


def proximal(objective: Objective, strength: float, model: nn.Module) -> Objective:
    """The objective plus strength / 2 times the squared distance from the model as it is now."""
    anchors = [value.detach().clone() for value in model.parameters()]

    def pulled(model: nn.Module, tensors: GraphTensors) -> Tensor:
        pairs = zip(model.parameters(), anchors, strict=True)
        distance = torch.stack([(value - anchor).square().sum() for value, anchor in pairs]).sum()
        return objective(model, tensors) + 0.5 * strength * distance

    return pulled


def train_epochs(
    model: nn.Module,
    tensors: GraphTensors,
    spec: TrainSpec,
    seed: int,
    *,
    objective: Objective = cross_entropy,
    optimizer: Optimizer | None = None,
) -> int:
    """Train a model in place.

    What it minimised is not told: with the regulariser in it, it would give the eigenvalues away.

    Parameters
    ----------
    model : nn.Module
        Maps ``tensors`` to logits.
    tensors : GraphTensors
        Where to train; without training nodes the model stays as it is, unless it says that it
        ``learns_unlabelled``.
    spec : TrainSpec
        Epochs and step rule.
    seed : int
        Decides dropout.
    objective : Objective (default: cross_entropy)
        What to minimise.
    optimizer : Optimizer | None (default: None)
        Moments of an earlier call to go on with; a fresh start without.

    Returns
    -------
    int
        The number of training nodes.
    """
    num_examples = len(tensors.splits["train"])
    if num_examples == 0 and not getattr(model, "learns_unlabelled", False):
        return 0
    parameters = [value for value in model.parameters() if value.requires_grad]
    rule = optimizer or Optimizer(parameters, spec)
    model.train()
    with seeded(seed, tensors.device):
        for _ in range(spec.epochs):
            loss = objective(model, tensors)
            rule.step(torch.autograd.grad(loss, parameters, materialize_grads=True))
    if not parameters_to_vector(parameters).isfinite().all():
        raise RunError(
            f"Training diverged with learning rate {spec.learning_rate:g}: a parameter is not "
            "finite; lower the learning rate or the strength of the regulariser."
        )
    return num_examples
