"""The back end `mask`: exact fixed-point sums over Z_2^64 under one-time pads, 8 bytes a value.

A contribution to a block sum carries zero-sum pads with the other senders, which cancel in the
sum, and a pad shared with the recipient, which takes it off: zero-sum pads alone would show the
sum to the server. A small sum carries zero-sum pads and one pad from the group key, which the
first contributor adds (every member adding it would multiply it by their number and show the low
bits when that is even). Sums are exact, so they do not depend on the order of addition.
"""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.sums import checks
from fedlap_app.sums.accumulator import Accumulator, Line
from fedlap_app.sums.backend import Floats, StepWeights, SumBackend
from fedlap_app.sums.fixed import from_fixed, to_fixed
from fedlap_app.sums.header import Place, Sum
from fedlap_app.sums.pads import Pads, signed_partners

_FRACTION_BITS = {"q44": 44, "q36": 36}
_GROUP = ""


class MaskBackend(SumBackend):
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

    def _seal(self, part: Floats, this: Sum, place: Place, weights: StepWeights) -> None:
        to_fixed(part[: -checks.SLOTS], _FRACTION_BITS[self.profile], this.contributors)
        words = part.view("<u8")
        recipient = this.recipient
        check = checks.fill(self._check_weights.use(weights.key), weights.ones[recipient], words)
        # The inner product under secret weights is a digest of the content, at no further cost.
        self.ledger.claim(place, recipient, weights.key + check.to_bytes(8, "little"))
        plus, minus = self._signs[recipient]
        self._pads.change(words, place, recipient, add=plus, subtract=minus, seen=weights.key)

    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        words = np.frombuffer(body, dtype="<u8").copy()
        recipient = this.recipient
        added = self.senders(recipient) if recipient else (_GROUP,)
        self._pads.change(words, place, recipient, subtract=added, seen=weights.key)
        drawn = self._check_weights.use(weights.key)
        checks.verify(drawn, weights.ones[recipient], words, this.contributors)
        return from_fixed(words[: -checks.SLOTS].view(np.int64), _FRACTION_BITS[self.profile])

    @cached_property
    def _check_weights(self) -> checks.Weights:
        return checks.Weights()

    @cached_property
    def _pads(self) -> Pads:
        return Pads(self.keys)

    @cached_property
    def _signs(self) -> dict[str, tuple[list[str], list[str]]]:
        """Peers whose pad is added, and those whose pad is subtracted, for each recipient."""
        me, signs = self.keys.me, {}
        for recipient in ("", *self.keys.members):
            senders = self.senders(recipient)
            if me not in senders:
                continue
            plus, minus = signed_partners(me, senders)
            if recipient:
                plus.append(recipient)
            elif me == senders[0]:
                plus.append(_GROUP)
            signs[recipient] = plus, minus
        return signs


class MaskAccumulator(Accumulator):
    """Running sums modulo 2^64; their memory is that of one contribution to each."""

    word: ClassVar[str] = "<u8"

    def _absorb(self, line: Line, sender: str, words: NDArray[np.uint64]) -> None:
        line.total += words
