"""Check slots: how the recipient of a sum knows that it is the sum of all contributions.

Each contribution carries, behind its values v, the constant 1 and the inner product
c = u + sum_j w_j v_j modulo the prime p = 2^61 - 1. The weights w of the values are uniform 64-bit
words from the group key, fresh for every step; the weight u of the 1 is fresh for every sum. The
slots are added like the values; afterwards the ones must have become the number of contributors,
and the inner product of the weights with the sum must equal the sum of the inner products. The
weight of the 1 makes even a vector of zeros depend on everything that it is derived from.

Someone who does not know the weights and changes the sum V into V' passes with a probability of at
most 2^-60: V' - V has an entry d that is not 0, and since both entries are below p / 2 in absolute
value (the recipient checks it), d is not 0 modulo p either, so one weight in about p fits. The sums
of one step may share the weights w, because the slots travel under pads: whoever adds learns
nothing about w from them, and the first sum that is refused ends the run. Inner products modulo
2^64 would not do: a change by 2^63 meets every odd weight alike.

A sum of many parameters has them in 32 bits or fewer, several in a word (`Lanes`); they are lifted
to signed integers, so the same holds for them.

The product needs 61 bits times 64 bits. Both sides are cut into four limbs of 16 bits held as
float64, a row for each, whose products a matrix times a row adds exactly (below 2^53 for 2^21
values a block).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.lanes import PAIRS, Lanes
from fedlap_app.sums.pads import CHUNK, Stream

PRIME = (1 << 61) - 1
SLOTS = 3
_LIMBS = 4
_LIMB_BITS = 16
_BLOCK = 2 * CHUNK  # values at once: their limbs and those of their weights stay near the core
_HALF = 32

Limbs = NDArray[np.float64]


class Weights:
    """Weights of the values in all sums of one step, drawn as far as they are needed.

    The object serves step after step, so that its memory is used again.
    """

    def __init__(self) -> None:
        self.key = b""
        self._stream: Stream | None = None
        self._drawn = 0
        self._words = np.empty(0, dtype="<u8")
        # Limbs take four times as much, so they are made block by block.
        self._left, self._right = limb_room(), limb_room()

    def use(self, key: bytes) -> "Weights":
        """Go over to the weights of another step, with a key of 32 bytes."""
        if key != self.key:
            self.key, self._stream, self._drawn = key, Stream(key), 0
        return self

    def inner_product(self, words: NDArray[np.int64], narrow: int = 0, lanes: Lanes = PAIRS) -> int:
        """Inner product with words below 2^60, modulo the prime.

        Parameters
        ----------
        words : array of int64
            Signed numbers.
        narrow : int
            How many words at the beginning hold several signed numbers each (default: 0).
        lanes : Lanes
            How they lie in these words (default: two of 32 bits).
        """
        some = lanes.numbers(words[:narrow].view(np.uint64))
        self._draw(some.size + words.size - narrow)
        return (self._product(some, 0) + self._product(words[narrow:], some.size)) % PRIME

    def _product(self, numbers: NDArray[np.signedinteger[Any]], first: int) -> int:
        """Exact inner product of signed numbers with the weights from the first one on."""
        total = np.zeros((numbers.itemsize // 2, _LIMBS), dtype=np.int64)
        for start in range(0, numbers.size, _BLOCK):
            part = numbers[start : start + _BLOCK]
            at, right = first + start, self._right[:, : part.size]
            words = self._words[at : at + part.size].view("<u2")
            for row in range(_LIMBS):
                right[row] = words[row::_LIMBS]
            for row, limbs in enumerate(limbs_of(part, self._left)):
                total[row] += (right @ limbs).astype(np.int64)
        return joined(total)

    def _draw(self, count: int) -> None:
        """Draw so many weights, by whole chunks."""
        if self._words.size < count:
            room = np.empty(-(-count // CHUNK) * CHUNK, dtype="<u8")
            room[: self._drawn] = self._words[: self._drawn]
            self._words = room
        while self._drawn < count and self._stream is not None:
            self._words[self._drawn : self._drawn + CHUNK] = self._stream.next(CHUNK)
            self._drawn += CHUNK


def limb_room() -> Limbs:
    """Room for the limbs of one block."""
    return np.empty((_LIMBS, _BLOCK))


def limbs_of(numbers: NDArray[np.signedinteger[Any]], room: Limbs) -> Limbs:
    """Signed numbers of at most one block cut into rows of limbs, in a part of some room."""
    count = numbers.itemsize // 2
    limbs, low = room[:count, : numbers.size], numbers.view("<u2")
    for row in range(count - 1):
        limbs[row] = low[row::count]
    # The upper limb of two's complement has the sign.
    limbs[-1] = numbers.view("<i2")[count - 1 :: count]
    return limbs


def sum_of_squares(numbers: NDArray[np.int32]) -> int:
    """Sum of squares, exact."""
    room, total = limb_room(), np.zeros((numbers.itemsize // 2,) * 2, dtype=np.int64)
    for start in range(0, numbers.size, _BLOCK):
        part = limbs_of(numbers[start : start + _BLOCK], room)
        total += (part @ part.T).astype(np.int64)
    return joined(total)


def joined(cells: NDArray[np.int64]) -> int:
    """The number whose limb products these are."""
    return sum(
        cell << _LIMB_BITS * (i + j)
        for i, row in enumerate(cells.tolist())
        for j, cell in enumerate(row)
    )


def fill(
    weights: Weights,
    one: int,
    words: NDArray[np.uint64],
    narrow: int = 0,
    lanes: Lanes = PAIRS,
) -> int:
    """Write the check slots behind the values of one contribution; gives its inner product.

    The product stands there in halves of 32 bits, so that the sum of many does not wrap.

    Parameters
    ----------
    weights : Weights
        Weights of the values.
    one : int
        Weight of the 1.
    words : array of uint64
        The values, and room for the slots.
    narrow, lanes
        As of `Weights.inner_product`.
    """
    check = (weights.inner_product(words[:-SLOTS].view(np.int64), narrow, lanes) + one) % PRIME
    words[-SLOTS:] = 1, check & ((1 << _HALF) - 1), check >> _HALF
    return check


def verify(
    weights: Weights,
    one: int,
    words: NDArray[np.uint64],
    count: int,
    narrow: int = 0,
    lanes: Lanes = PAIRS,
) -> None:
    """Refuse a sum whose check slots do not fit.

    Parameters
    ----------
    weights, one
        Weights of the values and of the 1.
    words : array of uint64
        The opened sum with its check slots.
    count : int
        Contributions that it must be made of.
    narrow, lanes
        As of `Weights.inner_product`.
    """
    found, low, high = (int(word) for word in words[-SLOTS:])
    verify_count(found, count)
    content = words[:-SLOTS].view(np.int64)
    # As Python's numbers: the lowest of 64 bits has no opposite among them.
    wide = content[narrow:]
    largest = max(int(wide.max(initial=0)), -int(wide.min(initial=0)))
    check = (low + (high << _HALF) - one * count) % PRIME
    if largest > PRIME // 2 or weights.inner_product(content, narrow, lanes) != check:
        raise ProtocolError(
            "A sum was altered on its way, or the members were told different things: "
            "its check slots do not fit its values; the run must stop."
        )


def verify_count(found: int, count: int) -> None:
    """Refuse a sum that is not made of `count` contributions, with the reason."""
    if found == count:
        return
    if 0 <= found < count:
        reason = f"it has too few contributions, {found} instead of {count}"
    elif count < found <= 4 * count:
        reason = f"it has too many contributions, {found} instead of {count}"
    else:
        reason = (
            "its pads do not cancel, so a contribution is missing, doubled, altered or from "
            "another step, or the members were told different things"
        )
    raise ProtocolError(f"A sum was refused: {reason}; the run must stop.")
