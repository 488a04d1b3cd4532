"""Who is told how a run goes on."""

import time
from collections import deque
from collections.abc import Mapping
from logging import INFO
from typing import Protocol

from flwr.common.logger import log

_NEWEST = 9  # rounds, whose mean pace counts


class Observer(Protocol):
    """Is told of every finished step of the phase before training, and of every round."""

    def step_done(self, number: int, steps: int) -> None:
        """Take note of a step."""

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Take note of the scores of a round."""


class Unwatched:
    """Of a run that nobody looks at."""

    def step_done(self, number: int, steps: int) -> None:
        """Take no note."""

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Take no note."""


def scores_of(totals: Mapping[str, float]) -> str:
    """Scores of a round in words; none of a sealed one, which only the organisations know."""
    names = {"val_accuracy": "validation", "test_accuracy": "test"}
    found = ((word, totals.get(key)) for key, word in names.items())
    return ", ".join(f"{word} {100 * value:.2f} %" for word, value in found if value is not None)


class LogObserver:
    """Writes a log line a round, with the time left; the phase before training has its own.

    The time left follows from the newest rounds: the first ones also start processes.
    """

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=_NEWEST)

    def step_done(self, number: int, steps: int) -> None:
        """Leave it to the phase, which logs the rate of its steps."""

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Log the scores of a round."""
        self._ends.append(time.perf_counter())
        log(
            INFO,
            "[ROUND %s/%s] %s",
            number,
            rounds,
            ", ".join(filter(None, (scores_of(totals), self._left(rounds - number)))) or "done",
            extra={"facts": {"phase": "training", "round": number, "rounds": rounds, **totals}},
        )

    def _left(self, rounds: int) -> str:
        """The time that so many rounds will take at most; patience may end them earlier."""
        if len(self._ends) < 2 or not rounds:
            return ""
        pace = (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)
        return f"{rounds * pace:.0f} s left"
