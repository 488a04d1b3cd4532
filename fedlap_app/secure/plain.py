"""The back end `plain`: float64 in the clear, for comparison only; the server reads everything.

Floating-point sums depend on their order, so the server adds contributions in the order of the
senders' names and holds back those that come before their turn: runs can be repeated bit for bit.
The check slots find accidents (a lost, doubled or damaged contribution), not a clever server.
"""

import math
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.backend import Accumulator, SumBackend
from fedlap_app.secure.checks import verify_count
from fedlap_app.secure.header import Header

_SLOTS = 3
_WEIGHTS_A_WORD = 4
_LARGEST_WEIGHT = 65_536.0
_AT_ONCE = 4096

Floats = NDArray[np.float64]


class PlainBackend(SumBackend):
    """Seal nothing; slots are 1, the inner product with random weights, and the norm."""

    name: ClassVar[str] = "plain"
    profiles: ClassVar[tuple[str, ...]] = ("float64",)

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        return (
            "The back end `plain` protects nothing: the server reads every number and can rebuild "
            "the graph from them; use it for comparisons only."
        )

    def _seal(self, values: Floats, header: Header, context: bytes) -> Floats:
        product, norm = self._weigh(values, 1, header, context)
        if not math.isfinite(norm):
            raise ProtocolError(
                "A value to be summed is not finite or too large; check what was computed."
            )
        body = np.empty(values.size + _SLOTS, dtype="<f8")
        body[:-_SLOTS] = values
        body[-_SLOTS:] = 1.0, product, norm
        return body

    def _open(self, body: memoryview, header: Header, context: bytes) -> Floats:
        if len(body) != 8 * (header.length + _SLOTS):
            raise ProtocolError(
                f"A sum of {len(body)} bytes came where {8 * (header.length + _SLOTS)} were "
                "expected; it was cut or altered."
            )
        numbers = np.frombuffer(body, dtype="<f8")
        count, product, norms = (float(x) for x in numbers[-_SLOTS:])
        verify_count(int(count) if count.is_integer() else -1, header.contributors)
        found, _ = self._weigh(numbers[:-_SLOTS], header.contributors, header, context)
        # Rounding of a sum of n products is at most n eps times the sum of their magnitudes,
        # which is at most the product of the norms.
        terms = header.length + header.contributors + 3
        magnitude = _LARGEST_WEIGHT * (np.sqrt(header.length) * norms + header.contributors)
        tolerance = 4 * terms * np.finfo(np.float64).eps * magnitude
        if not abs(found - product) <= tolerance < np.inf:
            raise ProtocolError(
                "A sum was altered on its way, or the members were told different things: "
                "its check slots do not fit its values; the run must stop."
            )
        return numbers[: header.length].copy()

    def _weigh(
        self, values: Floats, count: int, header: Header, context: bytes
    ) -> tuple[float, float]:
        """Inner product of the values and of the count with weights, and norm of the values."""
        if values.size > self._weights.size:
            self._weights = _draw_weights(self.keys.group_secret("plain weights"), values.size)
        one = 1 + self.step_weights(header, context).ones[header.recipient] % 2**16
        product = float(self._weights[: values.size] @ values) + one * count
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
    """Sum in the order of names; holds only what came before its turn."""

    def __init__(self, header: Header, senders: Iterable[str]) -> None:
        super().__init__(header, senders)
        self._sum = np.zeros(header.length + _SLOTS, dtype="<f8")
        self._early: dict[str, NDArray[np.float64]] = {}
        self._turn = 0

    def _absorb(self, sender: str, body: memoryview) -> None:
        self._require_size(body, self._sum.nbytes)
        self._early[sender] = np.frombuffer(body, dtype="<f8")
        while self._turn < len(self.senders) and self.senders[self._turn] in self._early:
            self._sum += self._early.pop(self.senders[self._turn])
            self._turn += 1

    def _body(self) -> bytes:
        return self._sum.tobytes()
