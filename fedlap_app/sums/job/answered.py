"""The last answer of a member in one job: its reply, and the state to go on from."""

import json
from dataclasses import dataclass, replace
from typing import Any

from fedlap_app.errors import ProtocolError
from fedlap_app.store.newest import Newest
from fedlap_app.store.packing import Data, Part
from fedlap_app.sums.job.messages import CARDS, Request

FORM = 3


@dataclass(frozen=True)
class Answered:
    """Small facts about the last answer.

    Attributes
    ----------
    hello
        The hello that the job began with.
    step, request
        Number and hash of the request.
    expects
        Kind of the next request; empty: the job is over.
    spec, data, members
        What the job belongs to: settings, subgraph, members.
    transcript, sent, columns, numbers
        State of the iteration, see `Iteration`.
    ended
        Why the job was ended before its time; empty: it was not.
    form
        Form of what is stored; a job of another release cannot go on.
    """

    hello: str
    step: int
    request: str
    expects: str
    spec: str
    data: str
    members: str
    transcript: str = ""
    sent: tuple[int, ...] = ()
    columns: int = 0
    numbers: int = 0
    ended: str = ""
    form: int = 1  # of records that do not say so

    @property
    def goes_on(self) -> bool:
        """Whether another request of the job can be answered."""
        return self.form == FORM and not self.ended

    def after(self, request: Request, expects: str, **state: Any) -> "Answered":  # noqa: ANN401
        """The same after one more request, with the state of the iteration if it changed."""
        mark = request.digest().hex()
        return replace(self, step=request.step, request=mark, expects=expects, **state)

    def write(self, records: Newest, reply: Data, kept: Part = b"") -> None:
        """Write everything as one record.

        Parameters
        ----------
        records
            The record of the job.
        reply
            What is sent.
        kept
            What else the next step needs.
        """
        records.write(json.dumps(self.__dict__).encode(), kept, reply)

    @classmethod
    def read(cls, records: Newest) -> "Answered | None":
        """The last answer; None: the job has not begun here."""
        found = records.read()
        if not found:
            return None
        values = json.loads(bytes(found[0]))
        values["sent"] = tuple(values["sent"])
        return cls(**values)


def stored_reply(records: Newest) -> memoryview:
    """The bytes that were sent last."""
    return records.read(3)[2]


def stored_rest(records: Newest) -> memoryview:
    """What else the next step needs."""
    return records.read(3)[1]


def is_repeated(last: Answered | None, request: Request) -> bool:
    """Whether the request was answered last; one that is not the next is refused."""
    if last is None:
        if request.kind != CARDS or request.step:
            raise ProtocolError(
                f"The job {request.job} is not known here; it was never begun or the store was "
                "lost, start a new one."
            )
        return False
    if last.form != FORM:
        raise ProtocolError(
            f"The job {request.job} was begun by another release of FedLap and cannot go on; start "
            "the run again, which begins a new job and reuses what is finished."
        )
    if last.ended:
        raise ProtocolError(f"The job {request.job} has ended: {last.ended}")
    place = f"Step {request.step} of job {request.job}"
    if request.step == last.step:
        if request.digest().hex() == last.request:
            return True
        raise ProtocolError(
            f"{place} was answered already and comes again with other content; it was altered."
        )
    if request.step < last.step:
        raise ProtocolError(
            f"{place} is stale: step {last.step} was answered already; start from the checkpoint."
        )
    if request.step > last.step + 1:
        raise ProtocolError(
            f"{place} came where step {last.step + 1} was expected; a message is out of order."
        )
    if request.kind != last.expects:
        raise ProtocolError(
            f"{place} asks for {request.kind!r} where {last.expects or 'nothing more'!r} was "
            "expected; it was altered."
        )
    return False
