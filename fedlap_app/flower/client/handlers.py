"""What an organisation does when the server asks; only those who train import torch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.app import ConfigRecord, RecordDict

from fedlap_app.errors import RunError
from fedlap_app.flower.client import ration, rows, training_ledger
from fedlap_app.flower.client.kept import keep_guesses, keep_model
from fedlap_app.flower.client.moments import kept_moments
from fedlap_app.flower.client.organisation import Organisation
from fedlap_app.flower.records import Metrics, to_metrics
from fedlap_app.flower.task import Late, Task, number_in
from fedlap_app.methods.scores import pack, pack_all, withhold
from fedlap_app.privacy.federation import read_federation_file
from fedlap_app.seeds import round_seed
from fedlap_app.version import VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import nn

    from fedlap_app.models.tensors import GraphTensors


def join(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Name, version, settings and schema of the organisation."""
    if organisation.federation is not None:
        require_version(organisation.federation)
    ration.join(organisation, run)
    subgraph = organisation.subgraph
    member = ConfigRecord(
        {
            "name": organisation.name,
            "version": VERSION,
            "settings": organisation.agreed,
            "schema": organisation.schema,
            "num-classes": subgraph.num_classes,
            "num-features": subgraph.num_features,
            "num-examples": int(subgraph.train_mask.sum()),
        }
    )
    return RecordDict({"member": member})


def require_version(federation: Path) -> None:
    """Refuse to work with another version than that which the federation agreed on."""
    agreed = read_federation_file(federation).version
    if agreed != VERSION:
        raise RunError(
            f"its federation file asks for version {agreed} of the app and "
            f"{VERSION} is installed there; install the version that all agreed on, "
            "or send the organisation a new federation file"
        )


def train(
    organisation: Organisation, content: RecordDict, run: int, state: RecordDict
) -> RecordDict:
    """One round of federated averaging; the received model is scored on the way.

    `state` is what Flower keeps for the client during a run.
    """
    from fedlap_app.methods.fedavg import client_round
    from fedlap_app.methods.fedlap_plus import method_objective

    settings, number = organisation.settings, number_in(content, "server-round")
    task = ration.admit(organisation, run, content, number)
    kept = None
    if settings.optimizer_state == "keep" and not settings.server_steps:
        kept = kept_moments(organisation, state, task)
    result = client_round(
        organisation.model,
        organisation.tensors_for(task),
        settings.round_spec,
        rows.received(organisation, content),
        seed=round_seed(settings.seed, task.stage, organisation.name, number),
        objective=method_objective(settings),
        proximal_mu=settings.pull,
        moments=kept.read(number) if kept else None,
    )
    if kept:
        kept.write(number, result.moments)
    metrics: Metrics = {
        "num-examples": _weight(organisation, result.num_examples),
        "scores": _scores(organisation, pack_all(result.received)),
    }
    records = rows.returned(organisation, content, result.parameters)
    reply = RecordDict({**records, "metrics": to_metrics(metrics)})
    training_ledger.enter(organisation, task, number, content, reply)
    return reply


def train_alone(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Train without any exchange; only counts and losses of each round leave."""
    from fedlap_app.methods.alone import train_alone as run_alone

    task = ration.admit(organisation, run, content, Late.KEEP, alone=True)
    stages = run_alone(
        organisation.tensors, organisation.model_spec, organisation.settings, organisation.name
    )
    keep_model(organisation, task, stages[-1].parameters, stages[-1].evaluation)
    metrics: Metrics = {
        "rounds": [len(stage.history) for stage in stages],
        "history": _scores(
            organisation,
            [value for stage in stages for row in stage.history for value in row],
        ),
        "scores": _scores(organisation, pack_all([stage.evaluation for stage in stages])),
    }
    reply = RecordDict({"metrics": to_metrics(metrics)})
    training_ledger.enter(organisation, task, Late.KEEP, content, reply)
    return reply


def evaluate(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Score the global model on the own data, with every weight that it may have."""
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.fusion import evaluate_weights

    task = ration.admit(organisation, run, content, Late.EVALUATE)
    with one_thread():
        evaluations = evaluate_weights(*_received(organisation, content, task))
    scores = _scores(organisation, pack_all(evaluations))
    reply = RecordDict({"metrics": to_metrics({"scores": scores})})
    training_ledger.enter(organisation, task, Late.EVALUATE, content, reply)
    return reply


def keep(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Score the best model of a stage and keep it, with the scores per class, in the store.

    When another stage follows, the client's guesses for it are kept as well; they never leave.
    """
    from fedlap_app.models.evaluation import score
    from fedlap_app.models.guesses import guess

    settings = organisation.settings
    task = ration.admit(organisation, run, content, Late.KEEP)
    predicted = _predict(organisation, content, task)
    evaluation = score(predicted, organisation.tensors)
    kept = rows.kept(organisation, rows.received(organisation, content))
    keep_model(organisation, task, kept, evaluation)
    if task.stage < settings.self_training:
        training = organisation.tensors.splits["train"]
        following = replace(task, stage=task.stage + 1)
        guesses = guess(predicted, training, settings.guess_spec)
        keep_guesses(organisation.store, following, guesses)
    scores = _scores(organisation, pack(evaluation))
    reply = RecordDict({"metrics": to_metrics({"scores": scores})})
    training_ledger.enter(organisation, task, Late.KEEP, content, reply)
    return reply


def _scores(organisation: Organisation, packed: Sequence[float]) -> list[float]:
    """Scores that may leave."""
    return withhold(packed, organisation.policy.least_scored_nodes)


def _predict(organisation: Organisation, content: RecordDict, task: Task) -> "NDArray[np.float32]":
    """Log-probabilities of the global model for the own nodes."""
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.evaluation import log_probabilities_of

    with one_thread():
        return log_probabilities_of(*_received(organisation, content, task))


def _received(
    organisation: Organisation, content: RecordDict, task: Task
) -> "tuple[nn.Module, GraphTensors]":
    """The global model, and the data that it reads."""
    from fedlap_app.models.parameters import load_parameters

    load_parameters(organisation.model, rows.received(organisation, content))
    return organisation.model, organisation.tensors_for(task)


def _weight(organisation: Organisation, num_examples: int) -> int:
    """What the model of a round is weighted by; nothing when there was nothing to train on."""
    by_nodes = organisation.settings.weight_by == "nodes" and num_examples
    return organisation.subgraph.num_nodes if by_nodes else num_examples
