"""Locks that the processes of this machine respect.

The file stays open between two holds, since a message of the phase before training takes a few
milliseconds: a lock that opens its file anew, as the package filelock does, takes a quarter of one.
"""

import fcntl
import math
import os
import time
import weakref
from collections.abc import Callable
from pathlib import Path

_LOOK = 0.01  # seconds between two tries


class Lock:
    """A lock on a file, which is made where it is missing, as is its folder."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
        weakref.finalize(self, os.close, self._file)

    def take(self, seconds: float = math.inf, *, waiting: Callable[[], object] = int) -> bool:
        """Take the lock; False: somebody else has held it for so long.

        Parameters
        ----------
        seconds
            How long to wait for it (default: for ever).
        waiting
            Is called once if somebody else has it.
        """
        deadline = time.monotonic() + seconds
        told = False
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    return False
            else:
                return True
            if not told:
                waiting()
                told = True
            time.sleep(_LOOK)

    def release(self) -> None:
        """Let others take it."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
