"""Messages of sealed training: what the server asks a member, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ConfigRecord, RecordDict

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.task import task_of, task_record
from fedlap_app.methods.task import Task
from fedlap_app.store.packing import Data
from fedlap_app.sums.training.agreed import Turn

MESSAGE_TYPE = "train.sealed"
WHERE, WEIGH, TURN, PUBLISH = "where", "weigh", "turn", "publish"
KINDS = (WHERE, WEIGH, TURN, PUBLISH)
RECORDS = ("config", "sum", "weights")
_MOST = 10**6


@dataclass(frozen=True)
class Asked:
    """One question.

    Attributes
    ----------
    task
        Run, and what programs before training have left.
    kind, job
        What is asked, and of which training job.
    turn
        Which sum it is about; of weights, of the stage and the member list alone.
    before, data
        The last sum, which has to be taken in first; none: there is none.
    weights
        Sum of the weights of the member list.
    """

    task: Task
    kind: str
    job: str
    turn: Turn
    before: Turn | None = None
    data: Data = b""
    weights: Data = b""

    def record(self) -> RecordDict:
        """As a message; what is large is one object for all members."""
        config = task_record(self.task)
        config.update({"kind": self.kind, "job": self.job, **_named(self.turn)})
        content = RecordDict({"config": config})
        if self.before is not None:
            content["sum"] = ConfigRecord({**_named(self.before), "data": bytes(self.data)})
        if self.weights:
            content["weights"] = ConfigRecord({"data": bytes(self.weights)})
        return content

    @classmethod
    def read(cls, content: RecordDict) -> "Asked":
        """Read a message; anything else is refused, a model beside it as well."""
        for name, record in content.items():
            if name not in RECORDS or not isinstance(record, ConfigRecord):
                raise ProtocolError(
                    f"a message of sealed training brings {name[:20]!r}, and no such record "
                    "belongs to it: it was not made by this app's server"
                )
        config, given = _record(content, "config"), _record(content, "sum")
        kind, job = config.get("kind"), config.get("job")
        if kind not in KINDS or not isinstance(job, str):
            raise ProtocolError(
                f"a message of sealed training asks for {str(kind)[:20]!r}: it was not made by "
                "this app's server"
            )
        return cls(
            task=task_of(content),
            kind=str(kind),
            job=job,
            turn=_turn(config),
            before=_turn(given) if given else None,
            data=_bytes(given),
            weights=_bytes(_record(content, "weights")),
        )


@dataclass(frozen=True)
class Answer:
    """What a member answers.

    Attributes
    ----------
    body
        Sealed words, or what is published; empty: it contributes nothing.
    mark
        The same at all members that hold the same state.
    facts
        Whole numbers and names: where a member is, or that its stage is over.
    """

    body: Data = b""
    mark: bytes = b""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> RecordDict:
        """As a message."""
        reply = ConfigRecord(dict(self.facts))
        for key, value in (("body", self.body), ("mark", self.mark)):
            if len(value):
                reply[key] = bytes(value)
        return RecordDict({"reply": reply})

    @classmethod
    def read(cls, content: RecordDict) -> "Answer":
        """Read a reply."""
        reply = _record(content, "reply")
        facts = {key: value for key, value in reply.items() if key not in ("body", "mark")}
        return cls(_bytes(reply, "body"), _bytes(reply, "mark"), facts)

    def number(self, key: str, default: int) -> int:
        """One of the facts that are whole numbers."""
        value = self.facts.get(key, default)
        if type(value) is not int or abs(value) >= 2**63:
            raise ProtocolError(f"a reply of sealed training has no number {key!r}: it was altered")
        return value

    @property
    def members(self) -> tuple[str, ...]:
        """The member list in force, as far as the member knows one."""
        value = self.facts.get("members", [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise ProtocolError("a reply of sealed training lists no members: it was altered")
        return tuple(map(str, value))


def _named(turn: Turn) -> dict[str, Any]:
    named = {"stage": turn.stage, "number": turn.number, "attempt": turn.attempt}
    return {**named, "members": list(turn.members)}


def _turn(record: Mapping[str, Any]) -> Turn:
    numbers = [record.get(key) for key in ("stage", "number", "attempt")]
    stage, number, attempt = (int(str(each)) if type(each) is int else -1 for each in numbers)
    members = record.get("members")
    right = isinstance(members, Sequence) and all(isinstance(each, str) for each in members)
    if not right or not all(0 <= each < _MOST for each in (stage, number, attempt)):
        raise ProtocolError("a message names no round of sealed training: it was altered")
    return Turn(stage, number, attempt, tuple(map(str, members or ())))


def _record(content: RecordDict, name: str) -> ConfigRecord:
    record = content.get(name)
    return record if isinstance(record, ConfigRecord) else ConfigRecord()


def _bytes(record: ConfigRecord, key: str = "data") -> bytes:
    value = record.get(key, b"")
    if not isinstance(value, bytes):
        raise ProtocolError("a message of sealed training has no bytes where some were expected")
    return value
