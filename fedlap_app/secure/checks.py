"""Check slots: how the recipient of a sum knows that it is the sum of all contributions.

Each contribution carries, behind its values, the constant 1 and the inner product
c = sum_j w_j v_j modulo the prime p = 2^61 - 1, where v are the values and the 1, and the weights w
are uniform 64-bit words from the group key, fresh for every sum. The slots are added like the
values; afterwards the ones must have become the number of contributors, and the inner product of
the weights with the sum must equal the sum of the inner products. The weight of the 1 makes even a
vector of zeros depend on the weights, hence on everything that they are derived from.

Someone who does not know the weights and changes the sum V into V' passes with a probability of at
most 2^-60: V' - V has an entry d that is not 0, and since both entries are below p / 2 in absolute
value (the recipient checks it), d is not 0 modulo p either, so one weight in about p fits. Inner
products modulo 2^64 would not do: a change by 2^63 meets every odd weight alike.

The product needs 61 bits times 64 bits. Both sides are cut into four limbs of 16 bits held as
float64, whose products a matrix product adds exactly (below 2^53 for 2^21 values a chunk).
"""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.pads import CHUNK, Stream

PRIME = (1 << 61) - 1
SLOTS = 3
_LIMBS = 4
_LIMB_BITS = 16
_HALF = 32


def inner_product(key: bytes, words: NDArray[np.int64]) -> int:
    """Inner product of words below 2^60 with the weights of a key, modulo the prime."""
    stream = Stream(key)
    total = np.zeros((_LIMBS, _LIMBS), dtype=np.int64)
    left, right = np.empty((2, min(words.size, CHUNK), _LIMBS))
    for start in range(0, words.size, CHUNK):
        part = words[start : start + CHUNK]
        size = part.size
        right[:size] = stream.next(size).view("<u2").reshape(size, _LIMBS)
        left[:size] = part.view("<u2").reshape(size, _LIMBS)
        # The upper limb of two's complement has the sign.
        left[:size, -1] = part.view("<i2")[_LIMBS - 1 :: _LIMBS]
        total += (left[:size].T @ right[:size]).astype(np.int64)
    exact = sum(
        cell << _LIMB_BITS * (i + j)
        for i, row in enumerate(total.tolist())
        for j, cell in enumerate(row)
    )
    return int(exact % PRIME)


def fill(key: bytes, words: NDArray[np.uint64]) -> int:
    """Write the check slots behind the values of one contribution; gives its inner product.

    The product stands there in halves of 32 bits, so that the sum of many does not wrap.
    """
    words[-SLOTS] = 1
    check = inner_product(key, words[: 1 - SLOTS].view(np.int64))
    words[1 - SLOTS :] = check & ((1 << _HALF) - 1), check >> _HALF
    return check


def verify(key: bytes, words: NDArray[np.uint64], count: int) -> None:
    """Refuse a sum whose check slots do not fit.

    Parameters
    ----------
    key : bytes
        Key of the weights.
    words : array of uint64
        The opened sum with its check slots.
    count : int
        Contributions that it must be made of.
    """
    found, low, high = (int(word) for word in words[-SLOTS:])
    verify_count(found, count)
    content = words[: 1 - SLOTS].view(np.int64)
    inside = content.max() <= PRIME // 2 and content.min() >= -(PRIME // 2)
    if not inside or inner_product(key, content) != (low + (high << _HALF)) % PRIME:
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
            "another step"
        )
    raise ProtocolError(f"A sum was refused: {reason}; the run must stop.")
