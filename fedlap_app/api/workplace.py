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

from fedlap_app.errors import ConfigError
from fedlap_app.store import places

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


def folder_at(path: str | os.PathLike[str], what: str) -> Path:
    """Make a folder that the caller named."""
    folder = Path(path).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{what} = '{folder}' cannot be a folder ({error.strerror}): name one that can be "
            "written"
        ) from None
    return folder


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
