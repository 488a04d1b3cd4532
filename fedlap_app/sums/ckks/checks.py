"""Check slots of approximate sums: how the recipient knows that all contributions are in it.

Each contribution carries, behind its values v, the constant 1 and four inner products
c_i = u_i + f sum_j w_ij v_j, f = 1 / (4 sqrt(length)). The weights w are uniform in [-1, 1), from
the group key and fresh for every step; u_i is fresh for every sum. Ciphertexts add up the slots
like the values; afterwards the ones must have become the number of contributors, and the inner
products must fit up to the noise of the sum.

The noise limits what can be found: a change d of the values passes one product when f |w . d| is
below the tolerance t, so all four with a probability of about (t / (f |d|))^4 for a change much
larger than t / f, which is about 1e-7 times the root of the length. Someone who cannot decrypt does
not know w, and the first sum that is refused ends the run.
"""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.backend import StepWeights
from fedlap_app.sums.checks import verify_count
from fedlap_app.sums.pads import CHUNK, Stream

PRODUCTS = 4
SLOTS = 1 + PRODUCTS
_DEVIATIONS = 25.0  # errors have the tails of a Laplace distribution: e^-35
_ROUNDING = 1e-12
# Products of values at the limit of a sum stay below it, but for seven deviations.
_SHARE = 0.25

Floats = NDArray[np.float64]


class RealWeights:
    """Weights of the values in all sums of one step, drawn as far as they are needed."""

    def __init__(self) -> None:
        self._key = b""
        self._weights: Floats = np.empty((0, PRODUCTS))

    def products(self, values: Floats, step: StepWeights, recipient: str, count: int) -> Floats:
        """The four inner products of values and of the constant `count`."""
        if step.key != self._key or len(self._weights) < values.size:
            self._key, self._weights = step.key, _draw(step.key, values.size)
        ones = np.array([step.ones[recipient]], dtype="<u8").view("<i2") * 2.0**-15
        weighted = values @ self._weights[: values.size]
        return np.asarray(_SHARE / np.sqrt(max(values.size, 1)) * weighted + count * ones)

    def fill(self, numbers: Floats, length: int, step: StepWeights, recipient: str) -> Floats:
        """Write the check slots behind the values; gives the products."""
        products = self.products(numbers[:length], step, recipient, 1)
        numbers[length] = 1.0
        numbers[length + 1 : length + SLOTS] = products
        return products

    def verify(
        self,
        numbers: Floats,
        length: int,
        step: StepWeights,
        recipient: str,
        *,
        count: int,
        noise: float,
    ) -> None:
        """Refuse a sum whose check slots do not fit.

        Parameters
        ----------
        numbers : array
            The opened sum with its check slots.
        length : int
            Values in it.
        step, recipient
            What the weights come from.
        count : int
            Contributions that it must be made of.
        noise : float
            Standard deviation of the error of one value.
        """
        values, one = numbers[:length], float(numbers[length])
        largest = float(np.abs(numbers[: length + SLOTS]).max())
        tolerance = _DEVIATIONS * noise + _ROUNDING * (1.0 + largest)
        near = np.isfinite(one) and abs(one - round(one)) <= tolerance
        verify_count(round(one) if near else -1, count)
        found = numbers[length + 1 : length + SLOTS]
        if not (np.abs(self.products(values, step, recipient, count) - found) <= tolerance).all():
            raise ProtocolError(
                "A sum was altered on its way, or the members were told different things: "
                "its check slots do not fit its values; the run must stop."
            )


def _draw(key: bytes, count: int) -> Floats:
    """Weights uniform in [-1, 1), of 16 bits each: one word a value, by whole chunks."""
    stream = Stream(key)
    weights = np.empty((-(-max(count, 1) // CHUNK) * CHUNK, PRODUCTS))
    for start in range(0, len(weights), CHUNK):
        words = stream.next(CHUNK)
        weights[start : start + CHUNK] = words.view("<i2").reshape(CHUNK, PRODUCTS)
    weights *= 2.0**-15
    return weights
