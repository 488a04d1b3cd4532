"""Iterations that a process keeps in memory between two messages; the store has them all."""

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from fedlap_app.methods.offline import answered
from fedlap_app.methods.offline.answered import Answered
from fedlap_app.methods.offline.iteration import Iteration
from fedlap_app.methods.offline.job_files import JobFiles

_MOST = 64


@dataclass(frozen=True, eq=False)
class Live:
    """An iteration, as long as the stored answer has this stamp."""

    stamp: tuple[str, int, int]
    last: Answered
    iteration: Iteration


_live: "OrderedDict[Path, Live]" = OrderedDict()


def find(files: JobFiles) -> Live | None:
    """What is in memory of a job, unless another process has gone on with it."""
    kept = _live.get(files.path)
    return kept if kept is not None and kept.stamp == answered.stamp(files) else None


def take(files: JobFiles) -> Live | None:
    """The same without a look at the store; it is kept no longer."""
    return _live.pop(files.path, None)


def keep(files: JobFiles, last: Answered, iteration: Iteration) -> None:
    """Keep an iteration whose state was stored."""
    _live[files.path] = Live(answered.stamp(files), last, iteration)
    while len(_live) > _MOST:
        _live.popitem(last=False)


def forget() -> None:
    """Drop everything, as the end of a process does."""
    _live.clear()
