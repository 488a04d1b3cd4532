"""Federated averaging: what a client does with the global model in one round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from torch import nn

from fedlap_app.learning.determinism import one_thread
from fedlap_app.learning.evaluation import Evaluation, evaluate
from fedlap_app.learning.parameters import load_parameters, parameters_of
from fedlap_app.learning.specs import TrainSpec
from fedlap_app.learning.tensors import GraphTensors
from fedlap_app.learning.training import Objective, TrainReport, cross_entropy, train_epochs
from fedlap_app.seeds import seed_of

Parameters = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class RoundResult:
    """A client's part of one round."""

    received: Evaluation
    parameters: Parameters
    report: TrainReport


def client_round(
    model: nn.Module,
    tensors: GraphTensors,
    spec: TrainSpec,
    parameters: Parameters,
    *,
    name: str,
    number: int,
    seed: int,
    objective: Objective = cross_entropy,
) -> RoundResult:
    """Score the received model, then train it; the same question has the same answer."""
    with one_thread():
        load_parameters(model, parameters)
        received = evaluate(model, tensors)
        draw = seed_of(seed, "train", name, number)
        report = train_epochs(model, tensors, spec, draw, objective=objective)
        return RoundResult(received, parameters_of(model), report)


def score(model: nn.Module, tensors: GraphTensors, parameters: Parameters) -> Evaluation:
    """Score the received model."""
    with one_thread():
        load_parameters(model, parameters)
        return evaluate(model, tensors)
