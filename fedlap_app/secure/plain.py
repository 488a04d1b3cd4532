"""The back end `plain`: float64 in the clear, for comparison only; the server reads everything.

Floating-point sums depend on their order, so the server adds contributions in the order of the
senders' names and holds back those that come before their turn: runs can be repeated bit for bit.
The check slots find accidents (a lost, doubled or damaged contribution), not a clever server.
"""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.backend import Accumulator, SumBackend
from fedlap_app.secure.checks import verify_count
from fedlap_app.secure.header import Header
from fedlap_app.secure.pads import CHUNK

_SLOTS = 3
_WEIGHTS_A_WORD = 4


class PlainBackend(SumBackend):
    """Seal nothing; slots are 1, the inner product with random weights, and its magnitude."""

    name: ClassVar[str] = "plain"
    profiles: ClassVar[tuple[str, ...]] = ("float64",)

    @property
    def weakness(self) -> str:
        """Warning for the start of a run."""
        return (
            "The back end `plain` protects nothing: the server reads every number and can rebuild "
            "the graph from them; use it for comparisons only."
        )

    def _seal(self, values: NDArray[np.float64], header: Header, context: bytes) -> bytes:
        body = np.empty(values.size + _SLOTS, dtype="<f8")
        body[: values.size] = values
        body[values.size] = 1.0
        product, magnitude = _weigh(self.weight_key(header, context), body[: 1 - _SLOTS])
        if not np.isfinite(magnitude):
            raise ProtocolError(
                "A value to be summed is not finite or too large; check what was computed."
            )
        body[1 - _SLOTS :] = product, magnitude
        return body.tobytes()

    def _open(self, body: memoryview, header: Header, context: bytes) -> NDArray[np.float64]:
        if len(body) != 8 * (header.length + _SLOTS):
            raise ProtocolError(
                f"A sum of {len(body)} bytes came where {8 * (header.length + _SLOTS)} were "
                "expected; it was cut or altered."
            )
        numbers = np.frombuffer(body, dtype="<f8")
        count, product, magnitude = (float(x) for x in numbers[-_SLOTS:])
        verify_count(int(count) if count.is_integer() else -1, header.contributors)
        found, _ = _weigh(self.weight_key(header, context), numbers[: 1 - _SLOTS])
        # Rounding of a sum of n products is at most n eps times the sum of their magnitudes.
        terms = header.length + header.contributors + 3
        tolerance = 4 * terms * np.finfo(np.float64).eps * magnitude
        if not abs(found - product) <= tolerance < np.inf:
            raise ProtocolError(
                "A sum was altered on its way, or the members were told different things: "
                "its check slots do not fit its values; the run must stop."
            )
        return numbers[: header.length].copy()


def _weigh(key: bytes, values: NDArray[np.float64]) -> tuple[float, float]:
    """Inner products of the values, and of their magnitudes, with weights of 1 to 65,536."""
    # Nothing is secret here, so a fast generator serves where `mask` takes a cipher.
    stream = np.random.Philox(key=int.from_bytes(key[:16], "little"))
    product = magnitude = 0.0
    weights = np.empty(min(values.size, CHUNK))
    for start in range(0, values.size, CHUNK):
        part = values[start : start + CHUNK]
        words = stream.random_raw(-(-part.size // _WEIGHTS_A_WORD))
        weight = weights[: part.size]
        np.add(words.astype("<u8", copy=False).view("<u2")[: part.size], 1.0, out=weight)
        product += float(weight @ part)
        magnitude += float(weight @ np.abs(part))
    return product, magnitude


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
