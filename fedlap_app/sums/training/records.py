"""What a member keeps of a training job: enough to go on after any message."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from fedlap_app.store import names
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.packing import Data
from fedlap_app.sums.training.agreed import Turn

_SETTLED, _LISTED, _REPLIES = names.SETTLED, names.LISTED, names.REPLIES
_SERIES = (_SETTLED, _LISTED, *_REPLIES)


@dataclass(frozen=True)
class Settled:
    """The last sum that was taken in.

    Attributes
    ----------
    stage, number
        Which one; the number is 0 before the first of a stage.
    chain
        Digest of all sums and models so far.
    received
        Hash of the sum, by which a repetition is known.
    data
        What the member trains on, as it was when the job began.
    scales
        What scales the next sum has, in hexadecimal digits; empty in 32 bits.
    """

    stage: int
    number: int
    chain: str
    data: str
    received: str = ""
    scales: str = ""


@dataclass(frozen=True)
class Listed:
    """The member list in force.

    Attributes
    ----------
    number
        Its number, 0 for the first.
    members
        Who is on it.
    stage
        The stage that the weights are of.
    weight
        The own weight.
    chain
        What the sum of weights was sealed under.
    total
        Sum of weights; 0: not known yet, or not needed by who was left out.
    """

    number: int
    members: tuple[str, ...]
    stage: int
    weight: float
    chain: str
    total: float = 0.0

    def is_of(self, turn: Turn) -> bool:
        """Whether a turn has this list."""
        return (self.number, self.members) == (turn.attempt, turn.members)


class Records:
    """Records of one job, each written as a whole; what was read is kept for the next question.

    Parameters
    ----------
    files
        Files of the job.
    """

    def __init__(self, files: JobFiles) -> None:
        self._series = {name: files.newest(name) for name in _SERIES}
        self._read: dict[str, tuple[bytes, Data] | None] = {}

    def unchanged(self) -> bool:
        """Whether nobody else has written records since."""
        return all(series.unchanged() for series in self._series.values())

    @property
    def settled(self) -> Settled | None:
        """The last sum that was taken in."""
        found = self._newest(_SETTLED)
        return Settled(**json.loads(found[0])) if found else None

    @property
    def state(self) -> Data:
        """The state after it."""
        found = self._newest(_SETTLED)
        return found[1] if found else b""

    def settle(self, settled: Settled, state: Data) -> None:
        """Note a sum that was taken in and the state after it, both or none."""
        self._write(_SETTLED, _facts(settled), state)

    @property
    def listed(self) -> Listed | None:
        """The member list in force."""
        found = self._newest(_LISTED)
        if not found:
            return None
        facts = json.loads(found[0])
        return Listed(**{**facts, "members": tuple(facts["members"])})

    @property
    def weighed(self) -> Data:
        """The own reply to the question for weights."""
        found = self._newest(_LISTED)
        return found[1] if found else b""

    def keep_list(self, listed: Listed, reply: Data) -> None:
        """Note a member list and the reply about it, both or none."""
        self._write(_LISTED, _facts(listed), reply)

    def reply(self, turn: Turn) -> Data | None:
        """The reply to a turn; None: it was not sealed, or is older than the last two rounds."""
        return next((data for sealed, data in self._replies() if sealed == turn), None)

    @property
    def last(self) -> Turn | None:
        """The turn that was sealed last."""
        return max((turn for turn, _ in self._replies()), key=lambda turn: turn.order, default=None)

    def keep_reply(self, turn: Turn, reply: Data) -> None:
        """Keep a reply before it leaves, besides that of the round before."""
        self._write(_REPLIES[turn.number % 2], json.dumps(turn).encode(), reply)

    def _replies(self) -> Iterator[tuple[Turn, Data]]:
        for found in filter(None, map(self._newest, _REPLIES)):
            stage, number, attempt, members = json.loads(found[0])
            yield Turn(stage, number, attempt, tuple(members)), found[1]

    def _newest(self, name: str) -> tuple[bytes, Data] | None:
        if name not in self._read:
            found = self._series[name].read(2)
            self._read[name] = (bytes(found[0]), found[1]) if found else None
        return self._read[name]

    def _write(self, name: str, facts: bytes, content: Data) -> None:
        self._read.pop(name, None)
        self._series[name].write(facts, content)
        self._read[name] = facts, content


def _facts(record: Settled | Listed) -> bytes:
    return json.dumps(asdict(record)).encode()
