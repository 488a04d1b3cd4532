"""The back end `mask`: exact fixed-point sums over Z_2^64 under one-time pads, 8 bytes a value.

A contribution to a block sum carries zero-sum pads with the other senders, which cancel in the
sum, and a pad shared with the recipient, which takes it off: zero-sum pads alone would show the
sum to the server. A small sum carries zero-sum pads and one pad from the group key, which the
first contributor adds (every member adding it would multiply it by their number and show the low
bits when that is even). Sums are exact, so they do not depend on the order of addition.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.sums.accumulator import Accumulator, Line
from fedlap_app.sums.backend import Floats, StepWeights
from fedlap_app.sums.exact import ExactBackend
from fedlap_app.sums.header import Place, Sum

_FRACTION_BITS = {"q44": 44, "q36": 36}
_GROUP = ""


class MaskBackend(ExactBackend):
    """Seal by adding pads, open by taking them off.

    The profile `q44` keeps 44 fraction bits and holds sums below 2^16, `q36` keeps 36 and holds
    sums below 2^24.
    """

    name: ClassVar[str] = "mask"
    profiles: ClassVar[tuple[str, ...]] = tuple(_FRACTION_BITS)

    @classmethod
    def fraction_bits(cls, profile: str) -> int:
        """Fraction bits of a profile; empty: the usual one."""
        return _FRACTION_BITS[profile or cls.profiles[0]]

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        words = np.frombuffer(body, dtype="<u8").copy()
        recipient = this.recipient
        added = self.senders(recipient) if recipient else (_GROUP,)
        self._pads.change(words, place, recipient, subtract=added, seen=weights.key)
        return self._verified(words, this, weights)

    def _partners(
        self, recipient: str, senders: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Zero-sum pads would show the sum to the server: one more pad lies on it."""
        plus, minus = super()._partners(recipient, senders)
        if recipient:
            plus = (*plus, recipient)
        elif self.keys.me == senders[0]:
            plus = (*plus, _GROUP)
        return plus, minus


class MaskAccumulator(Accumulator):
    """Running sums modulo 2^64; their memory is that of one contribution to each."""

    word: ClassVar[str] = "<u8"

    def _absorb(self, line: Line, sender: str, words: NDArray[np.uint64]) -> None:
        line.total += words
