"""What a message of the training phase asks a client to work on."""

from dataclasses import dataclass
from enum import IntEnum

from flwr.app import ConfigRecord, RecordDict

from fedlap_app.errors import ProtocolError

_STAGE = 1_000_000  # more than the rounds of a stage


class Late(IntEnum):
    """Messages of a stage that come after its rounds, by their places among the steps."""

    EVALUATE = _STAGE - 2
    KEEP = _STAGE - 1


@dataclass(frozen=True)
class Task:
    """Run, stage of self-training and basis of a message.

    Attributes
    ----------
    run : int
        Number of the run, under which the client keeps what it needs later.
    stage : int
        0, or the number of guessed label sets that the client has made so far.
    basis : str
        Offline job whose basis the model reads; empty for methods without one.
    """

    run: int
    stage: int = 0
    basis: str = ""

    def step(self, number: int) -> int:
        """Place among all messages of the run: of a round of the stage, or of a `Late` one."""
        return self.stage * _STAGE + number

    def to_config(self) -> ConfigRecord:
        """The task as a record; Flower cannot count an empty value."""
        record = ConfigRecord({"run": self.run, "stage": self.stage})
        if self.basis:
            record["basis"] = self.basis
        return record

    @classmethod
    def of(cls, content: RecordDict) -> "Task":
        """The task of a message."""
        return cls(
            run=number_in(content, "run"),
            stage=number_in(content, "stage"),
            basis=str(_config(content).get("basis", "")),
        )


def number_in(content: RecordDict, key: str) -> int:
    """A whole number of a message's configuration."""
    value = _config(content).get(key)
    if type(value) is not int:  # True is 1, but no number
        raise ProtocolError(f"the message carries no {key}: it was not made by this app's server")
    return value


def _config(content: RecordDict) -> ConfigRecord:
    record = content.get("config")
    return record if isinstance(record, ConfigRecord) else ConfigRecord()
