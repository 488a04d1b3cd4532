"""When the steps of an offline phase end, for measurements."""

import time


class StepWatch:
    """Is told of every step; tells the handshake from what comes after it."""

    def __init__(self) -> None:
        self._handshake_end = self._end = time.perf_counter()

    def __call__(self, number: int, rounds: int) -> None:
        """Note the end of a step; the steps of the handshake have the number 0."""
        self._end = time.perf_counter()
        if number == 0:
            self._handshake_end = self._end

    @property
    def iteration(self) -> float:
        """Seconds from the end of the handshake to the end of the phase."""
        return self._end - self._handshake_end
