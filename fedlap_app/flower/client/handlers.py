"""What an organisation does when the server asks; only those who train import torch."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flwr.app import ConfigRecord, RecordDict

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.client import ration, training_ledger
from fedlap_app.flower.client.moments import kept_moments
from fedlap_app.flower.records import Metrics, packed, records_in, to_metrics
from fedlap_app.flower.task import number_in
from fedlap_app.graphs.kinds import CATEGORY
from fedlap_app.methods.base import MODEL, Turn
from fedlap_app.methods.kept import ROUNDS, keep_guesses, keep_model, training_job
from fedlap_app.methods.organisation import Organisation
from fedlap_app.methods.scores import Layout, pack, pack_all, withhold
from fedlap_app.methods.task import Late, Task
from fedlap_app.privacy.federation import read_federation_file
from fedlap_app.version import VERSION

if TYPE_CHECKING:
    from torch import nn

    from fedlap_app.methods.local import AloneStage
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
            "num-categories": subgraph.kinds.count(CATEGORY),
            "num-inputs": subgraph.num_inputs,
            "asks": organisation.asks,
        }
    )
    if not organisation.settings.sealed:  # sealed sums tell the members themselves if it is 0
        member["num-examples"] = int(subgraph.train_mask.sum())
    if organisation.method.counts_nodes:
        member["num-nodes"] = subgraph.num_nodes
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
    """One round of training together; the received model is scored on the way.

    `state` is what Flower keeps for the client during a run.
    """
    method, number = organisation.method, number_in(content, "server-round")
    task = ration.admit(organisation, run, content, number)
    kept = None
    if method.settings.optimizer_state == "keep" and not method.server_steps:
        kept = kept_moments(organisation, state, task)
    turn = Turn(task, number, kept.read(number) if kept else None)
    update = method.train(organisation, records_in(content, MODEL), turn)
    if kept:
        kept.write(number, update.moments)
    metrics: dict[str, int | float | list[float]] = {
        "num-examples": update.weight,
        "scores": _scores(organisation, pack_all(update.scores)),
    }
    if len(update.sums):
        metrics["sums"] = _sums(organisation, update.sums)
    reply = RecordDict({**packed(update.records), "metrics": to_metrics(metrics)})
    training_ledger.enter(organisation, task, number, content, reply)
    return reply


def train_alone(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Train without any exchange; only counts and losses of each round leave."""
    from fedlap_app.methods.local import Local

    task = ration.admit(organisation, run, content, Late.KEEP, alone=True)
    method = organisation.method
    if not isinstance(method, Local):
        raise ProtocolError(
            f"method = '{method.name}' trains at no organisation alone: the message was not made "
            "by this app's server"
        )
    stages = method.train_alone(organisation.shape, organisation.inputs(task), organisation.name)
    keep_model(organisation, task, stages[-1].parameters, stages[-1].evaluation)
    rounds = [float(len(stage.history)) for stage in stages]
    if organisation.settings.sealed:
        note_alone(organisation, task, stages)
        return _answered(organisation, task, Late.KEEP, content, {"rounds": rounds})
    metrics: Metrics = {
        "rounds": rounds,
        "history": _scores(
            organisation,
            [value for stage in stages for row in stage.history for value in row],
        ),
        "scores": _scores(organisation, pack_all([stage.evaluation for stage in stages])),
    }
    return _answered(organisation, task, Late.KEEP, content, metrics)


def note_alone(organisation: Organisation, task: Task, stages: "Sequence[AloneStage]") -> None:
    """Write the scores of every round and stage down, for the organisation's own eyes."""
    folder = organisation.store.job(training_job(task.run))
    classes = organisation.subgraph.num_classes
    for number, stage in enumerate(stages):
        row = {"stage": number, "classes": classes, "history": stage.history}
        folder.append_line(ROUNDS, json.dumps({**row, "own": pack(stage.evaluation)}))


def evaluate(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Score the global model on the own data, with every weight that it may have."""
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.fusion import evaluate_weights

    task = ration.admit(organisation, run, content, Late.EVALUATE)
    with one_thread():
        model, inputs = _received(organisation, content, task)
        evaluations = evaluate_weights(model, inputs, bins=organisation.settings.score_bins)
    scores: Metrics = {"scores": _scores(organisation, pack_all(evaluations))}
    return _answered(organisation, task, Late.EVALUATE, content, scores)


def keep(organisation: Organisation, content: RecordDict, run: int) -> RecordDict:
    """Score the best model of a stage and keep it, with the scores per class, in the store.

    When another stage follows, the client's guesses for it are kept as well; they never leave.
    """
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.evaluation import log_probabilities_of, score
    from fedlap_app.models.guesses import guess

    method = organisation.method
    task = ration.admit(organisation, run, content, Late.KEEP)
    with one_thread():
        model, inputs = _received(organisation, content, task)
        predicted = log_probabilities_of(model, inputs)
    evaluation = score(predicted, inputs, bins=method.settings.score_bins)
    parameters = method.received(organisation, records_in(content, MODEL))
    keep_model(organisation, task, method.kept(organisation, parameters), evaluation)
    if task.stage < method.settings.self_training:
        following = replace(task, stage=task.stage + 1)
        guesses = guess(predicted, inputs.splits["train"], method.settings.guess_spec)
        keep_guesses(organisation.store, following, guesses)
    scores: Metrics = {"scores": _scores(organisation, pack(evaluation))}
    return _answered(organisation, task, Late.KEEP, content, scores)


def _answered(
    organisation: Organisation, task: Task, number: int, content: RecordDict, metrics: Metrics
) -> RecordDict:
    """A reply of numbers alone, entered into the ledger before it leaves."""
    reply = RecordDict({"metrics": to_metrics(metrics)})
    training_ledger.enter(organisation, task, number, content, reply)
    return reply


def _scores(organisation: Organisation, packed: Sequence[float]) -> list[float]:
    """Scores that may leave."""
    layout = Layout.of(organisation.settings, organisation.subgraph.num_classes)
    return withhold(packed, organisation.policy.least_scored_nodes, layout)


def _sums(organisation: Organisation, sums: Sequence[float]) -> list[float]:
    """Sums over the validation nodes, unless these are too few for any number of theirs to leave.

    The first of them counts the nodes.
    """
    enough = sums[0] >= organisation.policy.least_scored_nodes
    return list(sums) if enough else [0.0] * len(sums)


def _received(
    organisation: Organisation, content: RecordDict, task: Task
) -> "tuple[nn.Module, GraphTensors]":
    """The global model, and the data that it reads."""
    from fedlap_app.models.parameters import load_parameters

    records = records_in(content, MODEL)
    load_parameters(organisation.model, organisation.method.received(organisation, records))
    return organisation.model, organisation.inputs(task)
