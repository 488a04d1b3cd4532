"""What an organisation sends to the server in a training run, entered into the run's ledger.

Models travel in the clear but for TLS: the server reads each update, all read their average.
"""

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

from flwr.app import ArrayRecord, MetricRecord, RecordDict

from fedlap_app.flower.client import rows
from fedlap_app.flower.client.kept import training_job
from fedlap_app.flower.client.organisation import Organisation
from fedlap_app.flower.task import Late, Task
from fedlap_app.privacy.ledger import (
    FINISHED,
    MEMBERS,
    OPEN,
    RECEIVED,
    SENT,
    SERVER,
    Entry,
    Ledger,
)
from fedlap_app.settings import Settings

ALONE = "local"  # trains all stages in one message
_KINDS = {"arrays": ("model", "model updates"), rows.RECORD: ("learned rows", "learned rows")}


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
        return {**about, "method": method, "basis": task.basis}

    with store.lock():
        ledger = Ledger.open(store.job(job).path, facts, durable=organisation.deployed, begun=False)
        state = FINISHED if is_last(organisation.settings, task, number) else OPEN
        ledger.enter(task.step(number), 0, _entries(content, reply), state)


def is_last(settings: Settings, task: Task, number: int) -> bool:
    """Whether a message is the last one of its run."""
    if settings.method == ALONE:
        return True
    return number == Late.KEEP and task.stage == settings.self_training


def _entries(content: RecordDict, reply: RecordDict) -> Iterator[Entry]:
    for name, (received, sent) in _KINDS.items():
        everyone = (MEMBERS, SERVER)
        if values := _values(content, name):
            yield Entry(RECEIVED, received, everyone, (), (), 1, values)
        if values := _values(reply, name):
            yield Entry(SENT, sent, (SERVER,), everyone, (), 1, values)
    yield Entry(SENT, "scores and counts", (SERVER,), (), (), 1, _metrics(reply))


def _values(content: RecordDict, name: str) -> int:
    record = content.get(name)
    if not isinstance(record, ArrayRecord):
        return 0
    return sum(prod(array.shape) for array in record.values())


def _metrics(reply: RecordDict) -> int:
    record = reply.get("metrics")
    values = record.values() if isinstance(record, MetricRecord) else ()
    return sum(len(value) if isinstance(value, list) else 1 for value in values)
