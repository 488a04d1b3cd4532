"""Where a run in this process keeps its files, and how it stays quiet: nothing global changes."""

import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from fedlap_app.store import places
from fedlap_app.store.places import folder_at

__all__ = ["Workplace", "folder_at", "quietly", "temporary_home"]

_LOGGERS = ("flwr", "fedlap")
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


class Workplace:
    """A folder that is laid out as ``~/.fedlap``.

    Parameters
    ----------
    folder
        Where it is (default: a temporary one that only this user can read, and that is deleted
        when this object is gone, at the latest at the end of the process).
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(tempfile.mkdtemp(prefix="fedlap-"))
        if folder is None:
            weakref.finalize(self, _delete, self.folder, os.getpid())


def _delete(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a forked process may end while this one still works
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def temporary_home() -> Iterator[None]:
    """Keep stores, checkpoints and runs of this thread in a folder that is deleted afterwards."""
    place = Workplace()
    with places.home_at(place.folder):
        yield


@contextmanager
def quietly() -> Iterator[None]:
    """Drop the log lines that this thread writes meanwhile; other threads keep theirs."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_passes)  # the same filter is added only once
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


def _passes(record: logging.LogRecord) -> bool:
    return not _quiet.get()
