"""TenSEAL's usual parameters, for comparison: N = 8192 and primes of 60, 40, 40 and 60 bits.

They are made for products: of 200 bits 60 serve key switching only, and 80 the rescaling of two
products that no sum needs. A `ckks_vector` has real numbers in its slots, N / 2 of them.
"""

import math
from dataclasses import dataclass
from typing import Any

from fedlap_app.sums.ckks.parameters import secure_context

# Real slots put at most 4 / pi times the largest value into a coefficient.
SPREAD = 4.0 / math.pi
MARGIN = 0.99
TERNARY = 2.0 / 3.0  # variance of a coefficient of a key


@dataclass(frozen=True)
class TensealParameters:
    """One choice of parameters of `ckks_vector`.

    Attributes
    ----------
    name
        The profile.
    degree
        N: a ciphertext holds half as many real numbers.
    primes
        Bits of the primes, the one for key switching last.
    scale_bits
        A value v is encoded as v 2^scale_bits.
    """

    name: str
    degree: int
    primes: tuple[int, ...]
    scale_bits: int

    @property
    def bits(self) -> int:
        """Bits of the modulus of ciphertexts, which lack the last prime."""
        return sum(self.primes[:-1])

    @property
    def scale(self) -> float:
        """What values are multiplied with."""
        return 2.0**self.scale_bits

    @property
    def slots(self) -> int:
        """Real numbers in a ciphertext."""
        return self.degree // 2

    @property
    def limit(self) -> float:
        """Absolute values of a sum must stay below: it does not wrap long before doubles end."""
        return MARGIN * 2.0 ** (self.bits - 1 - self.scale_bits) / SPREAD

    def noise(self, contributors: int, *, symmetric: bool) -> float:
        """Standard deviation of the error of one value of a sum of fresh ciphertexts.

        Both keys give the same: what is left after the division by the last prime is rounding.
        """
        coefficient = math.sqrt((1.0 + self.degree * TERNARY + 1.0) / 12.0)
        return coefficient * math.sqrt(contributors * self.degree / 2) / self.scale

    def ciphertexts(self, numbers: int) -> int:
        """Ciphertexts for so many real numbers."""
        return -(-numbers // self.slots)

    @property
    def moduli(self) -> tuple[int, ...]:
        """Primes of ciphertexts."""
        found = self.context.first_context_data().parms().coeff_modulus()
        return tuple(int(prime.value()) for prime in found)

    @property
    def context(self) -> Any:  # noqa: ANN401 - SEAL has no types
        """SEAL's context, without any key; less than 128 bits of security is refused."""
        return secure_context(self.degree, self.primes)


TENSEAL_DEFAULT = TensealParameters("tenseal-default", 8192, (60, 40, 40, 60), 40)
