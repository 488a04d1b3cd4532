"""What an organisation sends to the server in a training run, entered into the run's ledger.

Models travel in the clear but for TLS: the server reads each update, all read their average.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from typing import Any

from flwr.app import ArrayRecord, MetricRecord, RecordDict

from fedlap_app.methods.base import MODEL, Method
from fedlap_app.methods.kept import training_job
from fedlap_app.methods.organisation import Organisation
from fedlap_app.methods.scores import SPLITS
from fedlap_app.methods.task import Late, Task
from fedlap_app.privacy.accounting import Released
from fedlap_app.privacy.ledger import (
    FINISHED,
    MEMBERS,
    NOBODY,
    NOISE,
    OPEN,
    RECEIVED,
    SENT,
    SERVER,
    Entry,
    Ledger,
)
from fedlap_app.store.packing import Data, unpack
from fedlap_app.sums.training.agreed import KEPT, Turn
from fedlap_app.sums.training.job import TrainingJob
from fedlap_app.sums.training.publication import told_splits


def enter(
    organisation: Organisation, task: Task, number: int, content: RecordDict, reply: RecordDict
) -> None:
    """Enter one message and its reply, before it leaves.

    Parameters
    ----------
    organisation, task
        Who trains, and what for.
    number
        Number of the round, or a `Late` message; one that comes again is not entered again.
    content, reply
        What came and what is sent.
    """
    store, job = organisation.store, training_job(task.run)

    def facts() -> Mapping[str, Any]:
        method = organisation.settings.method
        about = {"organisation": organisation.name, "phase": "training", "job": job}
        return {**about, "method": method, "basis": ", ".join(task.found.values())}

    with store.lock():
        ledger = Ledger.open(store.job(job).path, facts, durable=organisation.deployed, begun=False)
        state = FINISHED if is_last(organisation.method, task, number) else OPEN
        ledger.enter(task.step(number), 0, _entries(content, reply), state)


def enter_sealed(
    organisation: Organisation,
    task: Task,
    turn: Turn,
    job: TrainingJob,
    *,
    published: Data = b"",
    last: bool = False,
) -> None:
    """Enter what a sealed turn sends; the caller holds the lock of the store.

    Parameters
    ----------
    organisation, task
        Who trains, and what for.
    turn
        What was asked.
    job
        Its job, which has the keys.
    published
        What is told in the clear at the end of a stage.
    last
        Whether it is the last message of the job.
    """
    store, name = organisation.store, training_job(task.run)

    def facts() -> Mapping[str, Any]:
        method = organisation.settings.method
        about = {"organisation": organisation.name, "phase": "training", "job": name}
        return {**about, "method": method, "basis": ", ".join(task.found.values())}

    ledger = Ledger.open(store.job(name).path, facts, durable=organisation.deployed, begun=False)
    number = organisation.settings.rounds + KEPT + 1 if published else turn.number
    entries = [*_published(published)] if published else [*_sealed(job, turn)]
    promise = organisation.settings.promise
    if promise and not published and 0 < turn.number <= organisation.settings.rounds:
        about = ledger.facts.get(NOISE, {})
        releases = int(about.get("releases", 0)) + 1
        total = Released(store.root, durable=organisation.deployed).total(promise)
        ledger.tell(NOISE, {**promise.of(releases), **total})
    step = replace(task, stage=turn.stage).step(number)
    ledger.enter(step, 0, entries, FINISHED if last else OPEN)


def count_noise(organisation: Organisation) -> None:
    """Count a noisy update of any run before it leaves; the caller holds the lock of the store."""
    if promise := organisation.settings.promise:
        Released(organisation.store.root, durable=organisation.deployed).add(promise)


def _sealed(job: TrainingJob, turn: Turn) -> Iterator[Entry]:
    """A sealed sum: the own part of it, and what all have opened."""
    ids = (job.keys.key_id,)
    if not turn.number:
        kind, values = "sealed weights", 1
    else:
        shape = job.agreed.shape_of(turn)
        kind = "sealed changes and scores" if shape.tensors else "sealed scores"
        values = sum(each.size for each in shape.tensors) + shape.scores
    yield Entry(SENT, kind, (NOBODY,), (MEMBERS,), ids, 1, values)
    yield Entry(RECEIVED, f"sums of {kind}", (MEMBERS,), (), ids, 1, values)


def _published(data: Data) -> Iterator[Entry]:
    """What the server is told at the end of a stage."""
    parts = unpack(data)
    values = 2 * told_splits(parts[0], len(SPLITS)) if len(parts[0]) else 0
    yield Entry(SENT, "published counts", (SERVER,), (), (), 1, values)
    if len(parts) > 1:
        yield Entry(SENT, "published model", (SERVER,), (), (), 1, 1)


def is_last(method: Method, task: Task, number: int) -> bool:
    """Whether a message is the last one of its run; who trains alone is asked once."""
    stages = method.settings.self_training
    return not method.exchanges or (number == Late.KEEP and task.stage == stages)


def _entries(content: RecordDict, reply: RecordDict) -> Iterator[Entry]:
    everyone = (MEMBERS, SERVER)
    for name, values in _arrays(content):
        kind = "model" if name == MODEL else f"learned {name}"
        yield Entry(RECEIVED, kind, everyone, (), (), 1, values)
    for name, values in _arrays(reply):
        kind = "model updates" if name == MODEL else f"learned {name}"
        yield Entry(SENT, kind, (SERVER,), everyone, (), 1, values)
    yield Entry(SENT, "scores and counts", (SERVER,), (), (), 1, _metrics(reply))


def _arrays(content: RecordDict) -> Iterator[tuple[str, int]]:
    """Records of arrays, and how many numbers each has."""
    for name, record in content.items():
        if isinstance(record, ArrayRecord):
            values = sum(prod(array.shape) for array in record.values())
            if values:
                yield name, values


def _metrics(reply: RecordDict) -> int:
    record = reply.get("metrics")
    values = record.values() if isinstance(record, MetricRecord) else ()
    return sum(len(value) if isinstance(value, list) else 1 for value in values)
