"""What sums over a column tell: the size of its values, how they spread, whether it is of words."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FEW, FEW_OF_WORDS = 0.02, 0.75
"""Largest share of values other than zero in a column of few, alone and in a bag of words."""

_WORDS, _MANY = 0.2, 50
_ORDINARY = (2.0**-8, 2.0**4)
_BASE = 2.0**20
_TWO_VALUES = 1e-4
_FLAT = 1e-9


class Distribution:
    """What four moments of scaled values tell of each column.

    Parameters
    ----------
    raw
        (4, columns) means of the powers.
    """

    def __init__(self, raw: Array) -> None:
        mean = raw[0]
        second = raw[1] - mean**2
        third = raw[2] - 3 * mean * raw[1] + 2 * mean**3
        fourth = raw[3] - 4 * mean * raw[2] + 6 * mean**2 * raw[1] - 3 * mean**4
        self.flat = second <= _FLAT
        safe = np.where(self.flat, 1.0, second)
        self.deviation = np.sqrt(safe)
        self.kurtosis = np.where(self.flat, 1.0, fourth / safe**2)
        # Kurtosis is the squared skewness plus one for two values, and more for any others.
        gap = fourth * safe - third**2 - safe**3
        self.two_valued = ~self.flat & (np.abs(gap) < _TWO_VALUES * np.abs(fourth) * safe)
        self.middle = mean + third / (2 * safe)
        self.mean = mean
        self.moments = mean, self.deviation, self.kurtosis


def are_words(share: Array) -> bool:
    """Whether a table is a bag of words, by each column's share of values other than zero."""
    return bool(share.size >= _MANY and share.mean() <= _WORDS)


def ordinary(size: Array) -> NDArray[np.bool_]:
    """Columns whose values other than zero have the size of a count or a frequency."""
    return (size >= _ORDINARY[0]) & (size <= _ORDINARY[1])


def logarithms(x: Array) -> Array:
    """log2 |x|; 0 of zeros and missing values."""
    logs = np.zeros_like(x)
    np.log2(np.abs(x), where=np.isfinite(x) & (x != 0), out=logs)
    return logs


def digits_of(values: Array) -> Array:
    """(n, 3) digits below 1 in base 2^20 of numbers from 0, the last one after the point."""
    high = np.floor(values / _BASE)
    low = np.floor(values - high * _BASE)
    return np.stack([high / _BASE, low / _BASE, values - high * _BASE - low], axis=1)


def from_digits(sums: Array) -> Array:
    """Numbers from summed digits; sums of whole digits are whole, so noise is rounded away."""
    whole = np.rint(sums[:, :2] * _BASE)
    return np.asarray(whole[:, 0] * _BASE + whole[:, 1] + sums[:, 2])
