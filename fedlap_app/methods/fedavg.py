"""Federated averaging: what a client does with the global model in one round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from fedlap_app.models.determinism import one_thread
from fedlap_app.models.evaluation import Evaluation
from fedlap_app.models.fusion import evaluate_weights
from fedlap_app.models.optimizer import Optimizer
from fedlap_app.models.parameters import load_parameters, parameters_of
from fedlap_app.models.specs import TrainSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import Objective, cross_entropy, proximal, train_epochs

Parameters = Mapping[str, NDArray[Any]]
Moments = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class RoundResult:
    """A client's part of one round.

    Attributes
    ----------
    received : list of Evaluation
        Scores of the global model, with every weight that it may have.
    parameters : Parameters
        The trained model.
    num_examples : int
        Training nodes.
    moments : Moments
        State of the optimiser at the end.
    """

    received: list[Evaluation]
    parameters: Parameters
    num_examples: int
    moments: Moments


def client_round(
    model: nn.Module,
    tensors: GraphTensors,
    spec: TrainSpec,
    parameters: Parameters,
    *,
    seed: int,
    objective: Objective = cross_entropy,
    proximal_mu: float = 0.0,
    moments: Moments | None = None,
) -> RoundResult:
    """Score the received model, then train it; the same question has the same answer.

    Parameters
    ----------
    model : nn.Module
        Any model of the right shape; its parameters are replaced.
    tensors : GraphTensors
        The client's data.
    spec : TrainSpec
        Epochs and step rule.
    parameters : Parameters
        The global model.
    seed : int
        Decides dropout.
    objective : Objective (default: cross_entropy)
        What to minimise.
    proximal_mu : float (default: 0.0)
        Strength of FedProx's pull to the global model.
    moments : Moments | None (default: None)
        State of the optimiser to go on with, empty at first; None: a fresh start every round.
    """
    with one_thread():
        load_parameters(model, parameters)
        received = evaluate_weights(model, tensors)
        if proximal_mu:
            objective = proximal(objective, proximal_mu, model)
        rule = Optimizer(model.parameters(), spec)
        if moments:
            rule.load_moments(moments)
        count = train_epochs(model, tensors, spec, seed, objective=objective, optimizer=rule)
        kept = rule.moments() if moments is not None else {}
        return RoundResult(received, parameters_of(model), count, kept)
