"""Parameters for additions only: one prime, no level to spare, 128 bits of security.

A sum of ciphertexts needs no multiplication, so no prime is spent on rescaling and none on key
switching. What is left is one prime q of as many bits as the security level allows: 54 for N = 2048
(and 60, the most that SEAL takes, for N = 4096, whose limit is 109).
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from fedlap_app.errors import ConfigError

ERROR = 3.2
"""Standard deviation of the errors that SEAL draws."""


@dataclass(frozen=True)
class Parameters:
    """One choice of parameters.

    Attributes
    ----------
    name
        The profile.
    degree
        N: a ciphertext holds as many numbers.
    bits
        Bits of the prime.
    scale_bits
        A word is multiplied with about 2^scale_bits, so that errors stay below it.
    """

    name: str
    degree: int
    bits: int
    scale_bits: int

    def __reduce__(self) -> tuple[type["Parameters"], tuple[str, int, int, int]]:
        """For other processes, without the context, which they make by themselves."""
        return Parameters, (self.name, self.degree, self.bits, self.scale_bits)

    @property
    def scale(self) -> float:
        """What words are multiplied with, nearly."""
        return 2.0**self.scale_bits

    @property
    def slots(self) -> int:
        """Real numbers in a ciphertext."""
        return self.degree

    @property
    def word_bits(self) -> int:
        """t: sums are exact modulo 2^t."""
        return self.bits - self.scale_bits

    def ciphertexts(self, numbers: int) -> int:
        """Ciphertexts for so many real numbers."""
        return -(-numbers // self.slots)

    @cached_property
    def context(self) -> Any:  # noqa: ANN401 - SEAL has no types
        """SEAL's context, without any key; less than 128 bits of security is refused."""
        return secure_context(self.degree, (self.bits,))

    @cached_property
    def modulus(self) -> int:
        """The prime q."""
        return int(self.context.first_context_data().parms().coeff_modulus()[0].value())


CKKS_2048 = Parameters("ckks-2048", 2048, 54, 10)
CKKS_4096 = Parameters("ckks-4096", 4096, 60, 10)
PARAMETERS = {each.name: each for each in (CKKS_2048, CKKS_4096)}
TRAINING_2048 = Parameters("training-2048", 2048, 44, 12)
"""For sums of training: words of 32 bits in coefficients of 44, for 4,096 contributors."""


def load_seal() -> Any:  # noqa: ANN401 - a module without types
    """SEAL as tenseal binds it; loaded when it is needed, because it is large."""
    try:
        import tenseal.sealapi as seal
    except ImportError:
        raise ConfigError(
            "backend = 'ckks' needs the package tenseal: install fedlap[run], or try "
            "backend = 'mask'"
        ) from None
    return seal


def seal_parameters(degree: int, bits: tuple[int, ...]) -> Any:  # noqa: ANN401
    """SEAL's object for a degree and primes of so many bits."""
    seal = load_seal()
    chosen = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
    chosen.set_poly_modulus_degree(degree)
    chosen.set_coeff_modulus(seal.CoeffModulus.Create(degree, list(bits)))
    return chosen


@lru_cache(maxsize=16)
def secure_context(degree: int, bits: tuple[int, ...]) -> Any:  # noqa: ANN401
    """SEAL's context without any key; less than 128 bits of security is refused."""
    seal = load_seal()
    chosen = seal_parameters(degree, bits)
    context = seal.SEALContext(chosen, False, seal.SEC_LEVEL_TYPE.TC128)
    if not context.parameters_set():
        raise ConfigError(
            f"SEAL refuses N = {degree} with primes of {bits} bits "
            f"({context.parameters_error_message()}): choose parameters with 128 bits of security"
        )
    return context
