"""Jobs that a process keeps in memory between two messages; the store has them all."""

from collections import OrderedDict
from dataclasses import dataclass

from fedlap_app.methods.offline.answered import Answered
from fedlap_app.methods.offline.handshake import Handshake
from fedlap_app.methods.offline.iteration import Iteration
from fedlap_app.methods.offline.newest import Newest
from fedlap_app.privacy.ledger import Ledger

_MOST = 64


@dataclass(frozen=True, eq=False)
class Live:
    """A handshake or an iteration, as long as nobody else writes the answers of the job."""

    answers: Newest
    last: Answered
    work: Handshake | Iteration
    ledger: Ledger


_live: "OrderedDict[str, Live]" = OrderedDict()


def find(job: str) -> Live | None:
    """What is in memory of a job, unless another process has gone on with it."""
    kept = _live.get(job)
    return kept if kept is not None and kept.answers.unchanged() else None


def take(job: str) -> Live | None:
    """The same without a look at the store; it is kept no longer."""
    return _live.pop(job, None)


def keep(job: str, live: Live) -> None:
    """Keep what was stored."""
    _live[job] = live
    while len(_live) > _MOST:
        _live.popitem(last=False)


def forget() -> None:
    """Drop everything, as the end of a process does."""
    _live.clear()


def kept() -> list[Live]:
    """Everything in memory; experiments record from it what the parties of one process hold."""
    return list(_live.values())
