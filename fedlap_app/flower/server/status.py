"""How a run stands, in `status.json` of its folder: phase, progress, organisations.

`fedlap status` reads it. It holds counts, times and names, nothing of what is computed.
"""

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.store import names

_SECONDS = 1.0  # between two writes of mere progress


class Board:
    """Keeps the file up to date.

    Parameters
    ----------
    folder
        Folder of the run.
    grid
        Knows the organisations, when each was heard of and what it sent.
    """

    def __init__(self, folder: RunFolder, grid: MemberGrid) -> None:
        self._folder, self._grid = folder, grid
        self._phase, self._unit, self._done, self._total = "gathering", "", 0, 0
        self._started = time.time()
        self._written = 0.0
        self.training = ""  # back end that hides training; empty: nothing is exchanged, or unknown
        grid.watch = self.look
        self.write()

    def phase(self, name: str, unit: str, total: int) -> None:
        """A new phase begins, of so many units."""
        self._phase, self._unit, self._done, self._total = name, unit, 0, total
        self.write()

    def step(self, done: int, total: int) -> None:
        """So many units of the phase are done."""
        self._done, self._total = min(done, total), total
        self.look()

    def look(self) -> None:
        """Write the file unless it was written just now."""
        if time.monotonic() - self._written > _SECONDS:
            self.write()

    def end(self, state: str, reason: str = "") -> None:
        """The last word: finished, failed or stopped."""
        if state == "finished":
            self._phase = state
        self.write(state, reason)

    def write(self, state: str = "running", reason: str = "") -> None:
        """Write the file; a disk that is full for a while must not end a run for its sake."""
        self._written = time.monotonic()
        status = {
            "run": self._grid.run.run_id,
            "state": state,
            "reason": reason,
            "phase": self._phase,
            "training": self.training,
            "progress": {"done": self._done, "total": self._total, "unit": self._unit},
            "started": _iso(self._started),
            "updated": _iso(time.time()),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "organisations": self._organisations(),
        }
        with contextlib.suppress(OSError):
            self._folder.write_json(names.STATUS, status)

    def _organisations(self) -> dict[str, dict[str, Any]]:
        return {
            name: {
                "last_seen": _iso(traffic.seen) if traffic.seen else None,
                "bytes_up": traffic.up,
                "bytes_down": traffic.down,
                "retries": traffic.retries + self._grid.resent_to(name),
            }
            for name, traffic in sorted(self._grid.traffic.items())
        }


class BoardObserver:
    """Tells the board of every step and round, and passes it on."""

    def __init__(self, board: Board, observer: Observer) -> None:
        self._board, self._observer = board, observer

    def step_done(self, number: int, steps: int) -> None:
        """Take note of a step of the phase before training."""
        self._board.step(number, steps)
        self._observer.step_done(number, steps)

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Take note of a round."""
        self._board.step(number, rounds)
        self._observer.round_done(number, rounds, totals)


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
