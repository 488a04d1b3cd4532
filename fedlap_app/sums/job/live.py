"""Jobs that a process keeps in memory between two messages; the store has them all."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from fedlap_app.privacy.ledger import Ledger
from fedlap_app.store.newest import Newest
from fedlap_app.sums.job.answered import Answered
from fedlap_app.sums.job.handshake import Handshake
from fedlap_app.sums.job.iteration import Iteration

_MOST = 64


@dataclass(frozen=True, eq=False)
class Live:
    """A handshake or an iteration, as long as nobody else writes the answers of the job."""

    answers: Newest
    last: Answered
    work: Handshake | Iteration
    ledger: Ledger


_live: "OrderedDict[str, Live]" = OrderedDict()
_listener: ContextVar[Callable[[Live], None] | None] = ContextVar("listener", default=None)


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
    if listener := _listener.get():
        listener(live)
    while len(_live) > _MOST:
        _live.popitem(last=False)


def forget() -> None:
    """Drop everything, as the end of a process does."""
    _live.clear()


@contextmanager
def told(listener: Callable[[Live], None]) -> Iterator[None]:
    """Tell of everything that this thread keeps meanwhile, for attacks on one process' parties."""
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)
