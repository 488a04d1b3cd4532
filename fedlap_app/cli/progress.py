"""How far a run is: a bar on a terminal, lines in a pipe, with rate and time left."""

import time
from collections.abc import Callable, Mapping
from typing import TextIO

from fedlap_app.cli.voice import bar_stream, unit_of

_WIDTH = 24
_SECONDS = 5.0  # between two lines in a pipe
_PHASES = {"offline": "sealed sums", "training": "training"}


class Progress:
    """Shows the phases of a run one after the other; also an observer of one in this process.

    Parameters
    ----------
    label
        What stands before the phase.
    stream
        Where it is shown (default: stderr, or nowhere between lines of JSON).
    now
        The clock, in seconds.
    """

    def __init__(
        self,
        label: str = "",
        stream: TextIO | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label = f"{label}, " if label else ""
        self._stream = bar_stream() if stream is None else stream
        self._now = now
        self._phase = ""
        self._first = (0.0, 0)
        self._said = 0.0
        self._open = False
        self._shown: tuple[str, int] = ("", -1)

    def step_done(self, number: int, steps: int) -> None:
        """A step of the phase before training."""
        self.show("offline", number, steps, "steps")

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """A round of training."""
        self.show("training", number, rounds, "rounds")

    def show(self, phase: str, done: int, total: int, unit: str) -> None:
        """So many units of a phase are done."""
        if phase != self._phase:
            self.end()
            self._phase, self._first = phase, (self._now(), done)
            self._said = self._now()
        if total <= 0 or (phase, done) == self._shown:
            return
        self._shown = phase, done
        text = f"{self._label}{_PHASES.get(phase, phase)}: {self._counted(done, total, unit)}"
        if self._stream.isatty():
            filled = _WIDTH * min(done, total) // total
            bar = "#" * filled + "-" * (_WIDTH - filled)
            self._stream.write(f"\r\x1b[K[{bar}] {text}")
            self._open = True
        elif done >= total or self._now() - self._said >= _SECONDS:
            self._said = self._now()
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """A line by itself."""
        self.end()
        self._stream.write(f"{self._label}{text}\n")
        self._stream.flush()

    def end(self) -> None:
        """Leave the bar's line."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
        self._open = False

    def _counted(self, done: int, total: int, unit: str) -> str:
        started, first = self._first
        seconds, since = self._now() - started, done - first
        counted = f"{done}/{total} {unit_of(total, unit)}"
        if since <= 0 or seconds <= 0:
            return counted
        left = max(total - done, 0) * seconds / since
        return f"{counted}, {since / seconds:.2g} a second, {_clock(left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
