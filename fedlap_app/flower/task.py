"""The task of a training message, and its numbers, as Flower records."""

from flwr.app import ConfigRecord, RecordDict

from fedlap_app.errors import ProtocolError
from fedlap_app.methods.task import Task

_FOUND = "found."


def task_record(task: Task) -> ConfigRecord:
    """A task as a record."""
    found = {f"{_FOUND}{program}": job for program, job in task.found.items()}
    return ConfigRecord({"run": task.run, "stage": task.stage, **found})


def task_of(content: RecordDict) -> Task:
    """The task of a message."""
    found = {
        key.removeprefix(_FOUND): str(value)
        for key, value in _config(content).items()
        if key.startswith(_FOUND)
    }
    return Task(number_in(content, "run"), number_in(content, "stage"), found)


def number_in(content: RecordDict, key: str) -> int:
    """A whole number of a message's configuration."""
    value = _config(content).get(key)
    if type(value) is not int:  # True is 1, but no number
        raise ProtocolError(f"the message carries no {key}: it was not made by this app's server")
    return value


def _config(content: RecordDict) -> ConfigRecord:
    record = content.get("config")
    return record if isinstance(record, ConfigRecord) else ConfigRecord()
