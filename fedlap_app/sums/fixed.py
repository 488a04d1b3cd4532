"""Real numbers as integers: fixed point with a given number of fraction bits.

The sum of all contributions has to stay below 2^60 in absolute value: far enough from 2^63 that
nothing wraps, and below half the prime of the check slots, which need it.
"""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError

SUM_BITS = 60
_CHUNK = 8192


def largest(fraction_bits: int, contributors: int, sum_bits: int = SUM_BITS) -> float:
    """Largest absolute value that each contributor may put into a sum."""
    return float(2 ** (sum_bits - fraction_bits)) / contributors


def to_fixed(
    values: NDArray[np.float64], fraction_bits: int, contributors: int, sum_bits: int = SUM_BITS
) -> None:
    """Replace values by fixed-point int64 numbers in the same memory.

    What the sum could not hold is refused.
    """
    limit = largest(fraction_bits, contributors, sum_bits)
    # The norm is quick and mostly enough; written so that a nan fails too.
    if not values @ values < limit * limit and not np.abs(values).max() < limit:
        # The value itself stays out of the sentence: errors travel to the server.
        raise ProtocolError(
            f"A value to be summed is not finite or not below {limit:g} in absolute value "
            f"(2^{sum_bits - fraction_bits} over {contributors} contributors); "
            "scale the values down before sealing."
        )
    np.multiply(values, float(2**fraction_bits), out=values)
    np.rint(values, out=values)
    words = values.view(np.int64)
    for start in range(0, values.size, _CHUNK):
        words[start : start + _CHUNK] = values[start : start + _CHUNK].astype(np.int64)


def from_fixed(words: NDArray[np.int64], fraction_bits: int) -> NDArray[np.float64]:
    """Values of fixed-point integers."""
    return np.multiply(words, 2.0**-fraction_bits, dtype=np.float64)
