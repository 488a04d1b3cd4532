"""Methods without exchange: each organisation alone (`local`), or all data in one place."""

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fedlap_app.learning.determinism import one_thread
from fedlap_app.learning.evaluation import Evaluation, evaluate
from fedlap_app.learning.models import build_model
from fedlap_app.learning.parameters import load_parameters, parameters_of
from fedlap_app.learning.specs import ModelSpec, TrainSpec
from fedlap_app.learning.tensors import GraphTensors
from fedlap_app.learning.training import train_epochs
from fedlap_app.methods.scores import is_better, pack, total, unpack
from fedlap_app.seeds import seed_of


@dataclass(frozen=True)
class AloneResult:
    """The best validation round of a model that was trained alone."""

    best_round: int
    parameters: dict[str, NDArray[Any]]
    evaluation: Evaluation
    history: list[list[float]]
    train_losses: list[float]


def train_alone(
    tensors: GraphTensors,
    model_spec: ModelSpec,
    train_spec: TrainSpec,
    *,
    name: str,
    rounds: int,
    seed: int,
) -> AloneResult:
    """Train a fresh model for `rounds` times the local epochs and keep its best round.

    Each round starts a fresh optimiser, as in federated averaging, so that the two differ in
    the exchange only.
    """
    with one_thread():
        model = build_model(model_spec, seed).to(tensors.device)
        best: dict[str, float] | None = None
        history: list[list[float]] = []
        losses: list[float] = []
        for number in range(1, rounds + 1):
            report = train_epochs(model, tensors, train_spec, seed_of(seed, "train", name, number))
            losses.append(report.loss)
            history.append(pack(evaluate(model, tensors)))
            totals = total([unpack(history[-1])])
            if is_better(totals, best):
                best, best_round = totals, number
                parameters = {key: value.copy() for key, value in parameters_of(model).items()}
        load_parameters(model, parameters)
        return AloneResult(best_round, parameters, evaluate(model, tensors), history, losses)
