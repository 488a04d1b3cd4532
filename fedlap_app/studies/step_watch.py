"""Clocks for measurements of the offline phase: by the wall, and by what this process computes."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Instant:
    """One moment on both clocks, or a difference of two.

    Attributes
    ----------
    wall
        Seconds that passed.
    cpu
        Seconds that this process computed; others on the machine do not disturb it.
    """

    wall: float
    cpu: float

    @classmethod
    def now(cls) -> "Instant":
        """The present moment."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, earlier: "Instant") -> "Instant":
        """What lies between an earlier moment and this one."""
        return Instant(self.wall - earlier.wall, self.cpu - earlier.cpu)


class StepWatch:
    """Is told of every step of a phase; tells the handshake from what comes after it."""

    def __init__(self) -> None:
        self.started = self._handshake_end = self._end = Instant.now()

    def __call__(self, number: int, rounds: int) -> None:
        """Note the end of a step; the steps of the handshake have the number 0."""
        self._end = Instant.now()
        if number == 0:
            self._handshake_end = self._end

    @property
    def whole(self) -> Instant:
        """From the making of the watch to the end of the phase."""
        return self._end.since(self.started)

    @property
    def iteration(self) -> Instant:
        """From the end of the handshake to the end of the phase."""
        return self._end.since(self._handshake_end)
