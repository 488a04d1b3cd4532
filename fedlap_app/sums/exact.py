"""What back ends with exact sums have in common: whole numbers, check slots, zero-sum pads."""

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.sums import checks
from fedlap_app.sums.backend import Floats, StepWeights, SumBackend
from fedlap_app.sums.fixed import SUM_BITS, from_fixed, to_fixed
from fedlap_app.sums.header import Place, Sum
from fedlap_app.sums.pads import Pads, signed_partners

Words = NDArray[np.uint64]


class ExactBackend(SumBackend):
    """Sums of fixed-point numbers in words, which do not depend on the order of addition."""

    sum_bits: ClassVar[int] = SUM_BITS
    """Whole numbers of a sum stay below 2^sum_bits."""

    def _seal(self, part: Floats, this: Sum, place: Place, weights: StepWeights) -> None:
        to_fixed(
            part[: -checks.SLOTS],
            self.fraction_bits(self.profile),
            this.contributors,
            self.sum_bits,
        )
        words = part.view("<u8")
        recipient = this.recipient
        check = checks.fill(self._check_weights.use(weights.key), weights.ones[recipient], words)
        # The inner product under secret weights is a digest of the content, at no further cost.
        self.ledger.claim(place, recipient, weights.key + check.to_bytes(8, "little"))
        plus, minus = self._signs[recipient]
        self._pads.change(words, place, recipient, add=plus, subtract=minus, seen=weights.key)

    def _verified(self, words: Words, this: Sum, weights: StepWeights) -> Floats:
        """Values of the words of a sum, if its check slots fit."""
        drawn = self._check_weights.use(weights.key)
        checks.verify(drawn, weights.ones[this.recipient], words, this.contributors)
        numbers = words[: -checks.SLOTS].view(np.int64)
        return from_fixed(numbers, self.fraction_bits(self.profile))

    def _partners(
        self, recipient: str, senders: Sequence[str]
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Whose pads are added to a contribution, and whose are subtracted."""
        return signed_partners(self.keys.me, senders)

    @cached_property
    def _signs(self) -> dict[str, tuple[Sequence[str], Sequence[str]]]:
        everyone = {name: self.senders(name) for name in ("", *self.keys.members)}
        return {
            recipient: self._partners(recipient, senders)
            for recipient, senders in everyone.items()
            if self.keys.me in senders
        }

    @cached_property
    def _check_weights(self) -> checks.Weights:
        return checks.Weights()

    @cached_property
    def _pads(self) -> Pads:
        return Pads(self.keys)
