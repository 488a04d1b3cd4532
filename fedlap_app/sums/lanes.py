"""Narrow numbers in words of 64 bits, which are added side by side without a carry between them.

Two numbers of 32 bits or four of 16 lie in a word as memory has them. Of 12 bits there are five,
whose sums are taken of every other one at a time, so that a carry falls into a gap.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Signed = NDArray[np.signedinteger[Any]]

WIDTHS = (32, 16, 12)
_SHORT = 12
_MASK, _SIGN = (1 << _SHORT) - 1, 1 << _SHORT - 1
_SHIFTS = np.arange(0, 60, _SHORT, dtype=np.uint64)
_EVEN = np.uint64(sum(_MASK << at for at in (0, 24, 48)))
_ODD = np.uint64(sum(_MASK << at for at in (12, 36)))


@dataclass(frozen=True)
class Lanes:
    """Numbers of so many bits in words.

    Attributes
    ----------
    bits
        Of a number, one of `WIDTHS`.
    """

    bits: int = 32

    @property
    def per_word(self) -> int:
        """Numbers in a word."""
        return 64 // self.bits

    @property
    def most(self) -> int:
        """What every number is below, and not below the negative of."""
        return 1 << self.bits - 1

    def words(self, numbers: NDArray[np.float64]) -> Words:
        """Words of some whole numbers, the last one filled up with zeros."""
        kind = "<i4" if self.bits == WIDTHS[0] else "<i2"
        count = -(-numbers.size // self.per_word)
        room = np.zeros(count * self.per_word, dtype=kind)
        room[: numbers.size] = numbers
        if self.bits != _SHORT:
            return room.view("<u8")
        fields = room.view("<u2").reshape(-1, self.per_word) & np.uint16(_MASK)
        found: Words = (fields.astype("<u8") << _SHIFTS).sum(axis=1, dtype="<u8")
        return found

    def numbers(self, words: Words) -> Signed:
        """The signed numbers in some words."""
        if self.bits != _SHORT:
            return words.view("<i4" if self.bits == WIDTHS[0] else "<i2")
        fields = ((words[:, None] >> _SHIFTS) & np.uint64(_MASK)).astype("<i2")
        found: Signed = ((fields ^ _SIGN) - _SIGN).reshape(-1)
        return found

    def add(self, words: Words, others: Words) -> None:
        """Add numbers to others in place."""
        if self.bits != _SHORT:
            numbers = words.view(self._unsigned)
            np.add(numbers, others.view(self._unsigned), out=numbers)
            return
        even = ((words & _EVEN) + (others & _EVEN)) & _EVEN
        words[:] = even | (((words & _ODD) + (others & _ODD)) & _ODD)

    def subtract(self, words: Words, others: Words) -> None:
        """Subtract numbers from others in place."""
        if self.bits != _SHORT:
            numbers = words.view(self._unsigned)
            np.subtract(numbers, others.view(self._unsigned), out=numbers)
            return
        # What a number borrows is taken from a gap.
        even = ((words & _EVEN | ~_EVEN) - (others & _EVEN)) & _EVEN
        words[:] = even | (((words & _ODD | ~_ODD) - (others & _ODD)) & _ODD)

    def unused(self, words: Words) -> bool:
        """Whether the bits of no number are all zero, as sums leave them."""
        return self.bits != _SHORT or not (words & ~(_EVEN | _ODD)).any()

    @property
    def _unsigned(self) -> str:
        return f"<u{self.bits // 8}"


PAIRS, WHOLE = Lanes(), Lanes(64)
"""Two numbers a word, and one."""
