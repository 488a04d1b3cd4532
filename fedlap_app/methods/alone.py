"""Methods without exchange: each organisation alone (`local`), or all data in one place."""

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray
from torch import nn

from fedlap_app.methods.scores import Best, pack, total, unpack
from fedlap_app.models.determinism import one_thread
from fedlap_app.models.evaluation import Evaluation, evaluate, log_probabilities_of
from fedlap_app.models.guesses import guess
from fedlap_app.models.networks import build_model
from fedlap_app.models.optimizer import Optimizer
from fedlap_app.models.parameters import load_parameters, parameters_of
from fedlap_app.models.specs import ModelSpec
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import train_epochs
from fedlap_app.seeds import round_seed, stage_seed
from fedlap_app.settings import Settings


@dataclass(frozen=True)
class AloneStage:
    """After one training from a fresh model: its rounds, and the best model so far."""

    best_stage: int
    best: Best
    evaluation: Evaluation
    parameters: dict[str, NDArray[Any]]
    history: list[list[float]]

    @property
    def best_round(self) -> int:
        """Round of the best model in its stage."""
        return self.best.round


def train_alone(
    tensors: GraphTensors, model_spec: ModelSpec, settings: Settings, name: str
) -> list[AloneStage]:
    """Train a fresh model in every stage of self-training and keep the best validation round.

    A stage that validates worse than an earlier one keeps that one's model.

    A round has as many epochs, and starts its optimiser anew or not, as in federated averaging,
    so that the two differ in the exchange only.
    """
    stages: list[AloneStage] = []
    with one_thread():
        for stage in range(settings.self_training + 1):
            model = build_model(model_spec, stage_seed(settings.seed, stage)).to(tensors.device)
            trained = _train_stage(model, tensors, settings, name, stage)
            if stages and not trained.best.is_ahead_of(stages[-1].best):
                trained = replace(stages[-1], history=trained.history)
            stages.append(trained)
            load_parameters(model, stages[-1].parameters)
            predicted = log_probabilities_of(model, tensors)
            found = guess(predicted, tensors.splits["train"], settings.guess_spec)
            tensors = tensors.with_guesses(found)
    return stages


def _train_stage(
    model: nn.Module, tensors: GraphTensors, settings: Settings, name: str, stage: int
) -> AloneStage:
    spec = settings.train_spec
    rule = Optimizer(model.parameters(), spec)
    best = Best(settings.patience)
    history: list[list[float]] = []
    for number in range(1, settings.rounds + 1):
        if settings.optimizer_state == "reset":
            rule = Optimizer(model.parameters(), spec)
        seed = round_seed(settings.seed, stage, name, number)
        train_epochs(model, tensors, spec, seed, optimizer=rule)
        scores = evaluate(model, tensors)
        history.append(pack(scores))
        if best.takes(number, total([unpack(history[-1])])):
            evaluation, parameters = scores, parameters_of(model)
        if best.is_enough(number):
            break
    return AloneStage(stage, best, evaluation, parameters, history)
