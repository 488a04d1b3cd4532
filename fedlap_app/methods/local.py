"""Methods without exchange: each organisation alone (`local`), or all data in one place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import Parameters, Schema
from fedlap_app.methods.fedavg import FedAvg, scored
from fedlap_app.methods.scores import Best, Layout, pack, total, unpack
from fedlap_app.methods.weighing import step
from fedlap_app.models.options import AveragingOptions
from fedlap_app.models.specs import BRANCH_WEIGHTS
from fedlap_app.seeds import round_seed, stage_seed

if TYPE_CHECKING:
    from torch import nn

    from fedlap_app.models.evaluation import Evaluation
    from fedlap_app.models.tensors import GraphTensors


def reweigh(model: "nn.Module", sums: Sequence[float]) -> None:
    """Let the weights of a model's branches follow them, as the server does for all."""
    import torch

    if not sums:
        return
    weights = model.get_buffer(BRANCH_WEIGHTS)
    moved = step(weights.cpu().numpy().astype(np.float64), sums)
    weights.copy_(torch.from_numpy(moved))


@dataclass(frozen=True)
class AloneStage:
    """After one training from a fresh model: its rounds, and the best model so far."""

    best_stage: int
    best: Best
    evaluation: "Evaluation"
    parameters: Parameters
    history: list[list[float]]

    @property
    def best_round(self) -> int:
        """Round of the best model in its stage."""
        return self.best.round


class Local(FedAvg):
    """Every organisation trains by itself and keeps its own best round."""

    name: ClassVar[str] = "local"
    summary: ClassVar[str] = "no exchange"
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees counts of scores of every organisation.",
        "Organisations learn nothing of each other.",
        "No model and no data leaves.",
    )
    reads: ClassVar[frozenset[str]] = FedAvg.reads - keys_of(AveragingOptions)
    exchanges: ClassVar[bool] = False
    own_models: ClassVar[bool] = True
    steps_at_server: ClassVar[bool] = False

    def train_alone(self, schema: Schema, inputs: "GraphTensors", name: str) -> list[AloneStage]:
        """Train a fresh model in every stage of self-training; keep the best validation round.

        A stage that validates worse than an earlier one keeps that one's model.

        A round has as many epochs, and starts its optimiser anew or not, as in federated averaging,
        so that the two differ in the exchange only.
        """
        from fedlap_app.models.determinism import one_thread
        from fedlap_app.models.evaluation import log_probabilities_of
        from fedlap_app.models.guesses import guess
        from fedlap_app.models.parameters import load_parameters

        settings = self.settings
        stages: list[AloneStage] = []
        with one_thread():
            for stage in range(settings.self_training + 1):
                model = self.model(schema, stage_seed(settings.seed, stage)).to(inputs.device)
                trained = self._train_stage(model, inputs, name, stage, schema)
                if stages and not trained.best.is_ahead_of(stages[-1].best):
                    trained = replace(stages[-1], history=trained.history)
                stages.append(trained)
                load_parameters(model, stages[-1].parameters)
                predicted = log_probabilities_of(model, inputs)
                found = guess(predicted, inputs.splits["train"], settings.guess_spec)
                inputs = inputs.with_guesses(found)
        return stages

    def _train_stage(
        self, model: "nn.Module", inputs: "GraphTensors", name: str, stage: int, schema: Schema
    ) -> AloneStage:
        from fedlap_app.models.optimizer import Optimizer
        from fedlap_app.models.parameters import parameters_of
        from fedlap_app.models.training import train_epochs

        settings = self.settings
        spec = settings.train_spec
        rule = Optimizer(model.parameters(), spec)
        best = Best.of(self)
        layout = Layout.of(settings, schema.classes)
        history: list[list[float]] = []
        for number in range(1, settings.rounds + 1):
            if settings.optimizer_state == "reset":
                rule = Optimizer(model.parameters(), spec)
            seed = round_seed(settings.seed, stage, name, number)
            train_epochs(model, inputs, spec, seed, objective=self.loss, optimizer=rule)
            (scores, *_), sums = scored(model, inputs, bins=settings.score_bins)
            history.append(pack(scores))
            if best.takes(number, total([unpack(history[-1], layout)])):
                evaluation, parameters = scores, parameters_of(model)
            reweigh(model, sums)
            if best.is_enough(number):
                break
        return AloneStage(stage, best, evaluation, parameters, history)


class Central(Local):
    """One model on the whole graph, as an upper bound."""

    name: ClassVar[str] = "central"
    summary: ClassVar[str] = "all data in one place"
    reveals: ClassVar[tuple[str, str, str]] = (
        "Whoever trains sees all data of all organisations.",
        "It is a bound to compare with, and runs in one process only.",
        "Nothing is protected.",
    )
    own_models: ClassVar[bool] = False
    pooled: ClassVar[bool] = True
