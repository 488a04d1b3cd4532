"""The back end `plain`: float64 in the clear, for comparison only; the server reads everything.

Floating-point sums depend on their order, so the server adds contributions in the order of the
senders' names and holds back those that come before their turn: runs can be repeated bit for bit.
The check slots find accidents (a lost, doubled or damaged contribution), not a clever server.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.accumulator import Accumulator, Line
from fedlap_app.sums.backend import Floats, StepWeights, SumBackend
from fedlap_app.sums.checks import SLOTS, verify_count
from fedlap_app.sums.header import Header, Place, Sum

_WEIGHTS_A_WORD = 4
_LARGEST_WEIGHT = 65_536.0
_AT_ONCE = 4096
_EPS = 2.0**-52


class PlainBackend(SumBackend):
    """Seal nothing; slots are 1, the inner product with random weights, and the norm."""

    name: ClassVar[str] = "plain"
    profiles: ClassVar[tuple[str, ...]] = ("float64",)
    sealed: ClassVar[bool] = False  # its precision is that of `mask`, so that both decide alike

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        return (
            "The back end `plain` protects nothing: the server reads every number and can rebuild "
            "the graph from them; use it for comparisons only."
        )

    def _seal(self, part: Floats, this: Sum, place: Place, weights: StepWeights) -> None:
        product, norm = self._weigh(part[:-SLOTS], 1, weights.ones[this.recipient])
        if not math.isfinite(norm):
            raise ProtocolError(
                "A value to be summed is not finite or too large; check what was computed."
            )
        part[-SLOTS:] = 1.0, product, norm

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        numbers = np.frombuffer(body, dtype="<f8")
        count, product, norms = numbers[-SLOTS:].tolist()
        verify_count(int(count) if count.is_integer() else -1, this.contributors)
        one = weights.ones[this.recipient]
        found, _ = self._weigh(numbers[:-SLOTS], this.contributors, one)
        # Rounding of a sum of n products is at most n eps times the sum of their magnitudes,
        # which is at most the product of the norms.
        terms = this.length + this.contributors + 3
        magnitude = _LARGEST_WEIGHT * (math.sqrt(this.length) * norms + this.contributors)
        if not abs(found - product) <= 4 * terms * _EPS * magnitude < math.inf:
            raise ProtocolError(
                "A sum was altered on its way, or the members were told different things: "
                "its check slots do not fit its values; the run must stop."
            )
        return numbers[:-SLOTS].copy()

    def _weigh(self, values: Floats, count: int, one: int) -> tuple[float, float]:
        """Inner product of the values and of the count with weights, and norm of the values."""
        size = values.size
        if size > self._weights.size:
            self._weights = _draw_weights(self.keys.group_secret("plain weights"), size)
        product = float(self._weights[:size] @ values) + (1 + one % 2**16) * count
        return product, math.sqrt(values @ values)

    @cached_property
    def _weights(self) -> Floats:
        """Weights of the values, the same in all sums of the job: they find accidents only."""
        return np.zeros(0)


def _draw_weights(key: bytes, count: int) -> Floats:
    """Weights of 1 to 65,536, at least as many as asked for."""
    # Nothing is secret here, so a fast generator serves where `mask` takes a cipher.
    stream = np.random.Philox(key=int.from_bytes(key[:16], "little"))
    words = stream.random_raw(-(-count // _AT_ONCE) * _AT_ONCE // _WEIGHTS_A_WORD)
    return np.asarray(words.astype("<u8", copy=False).view("<u2") + 1.0, dtype=np.float64)


class PlainAccumulator(Accumulator):
    """Sums in the order of names; holds only what came before its turn."""

    word: ClassVar[str] = "<f8"

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        super().__init__(header, senders)
        self._early: dict[tuple[str, str], Floats] = {}

    def _absorb(self, line: Line, sender: str, words: Floats) -> None:
        recipient = line.sum.recipient
        self._early[recipient, sender] = words
        for name in line.senders[line.taken :]:
            if (recipient, name) not in self._early:
                break
            line.total += self._early.pop((recipient, name))
            line.taken += 1
