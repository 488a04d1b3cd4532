"""Folders of prepared files that many processes may ask for at once."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from fedlap_app.store.locks import Lock

ENTRY_LIMIT = 50


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that other processes respect, to prepare an entry only once."""
    lock = Lock(path)
    lock.take()
    try:
        yield
    finally:
        lock.release()


def ensure_entry(entry: Path, build: Callable[[Path], None]) -> None:
    """Make the folder ``entry`` with ``build`` unless it is there; it appears complete or not.

    The oldest entries beside it are deleted beyond `ENTRY_LIMIT`.
    """
    if entry.is_dir():
        with contextlib.suppress(OSError):
            os.utime(entry)
        return
    with locked(entry.parent / ".lock"):
        if entry.is_dir():
            return
        scratch = Path(tempfile.mkdtemp(prefix=".new-", dir=entry.parent))
        try:
            build(scratch)
            with contextlib.suppress(OSError):  # somebody without the lock was faster
                scratch.rename(entry)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        _prune(entry.parent)


def drop_entry(entry: Path) -> None:
    """Take a damaged entry away; safe when several processes do it."""
    with contextlib.suppress(OSError):
        grave = Path(tempfile.mkdtemp(prefix=".old-", dir=entry.parent))
        entry.rename(grave / entry.name)
        shutil.rmtree(grave, ignore_errors=True)


def _prune(folder: Path) -> None:
    entries = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
    for old in sorted(entries, key=_age)[:-ENTRY_LIMIT]:
        drop_entry(old)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
