"""What a run asks of a back end before there are keys: precision, sizes, whether it hides sums."""

from typing import ClassVar

from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.fixed import SUM_BITS
from fedlap_app.sums.header import Sum

_LARGEST_MULTIPLE = 64
_LEAST_MULTIPLE = 8


class Facts:
    """Facts of a back end; the defaults are those of fixed-point numbers of 64 bits.

    Attributes
    ----------
    name, profiles
        What users write.
    sealed
        Whether the server is kept from reading the sums.
    spare
        Numbers left free in the last ciphertext of a block, for check slots.
    """

    name: ClassVar[str]
    profiles: ClassVar[tuple[str, ...]]
    sealed: ClassVar[bool] = True
    spare: ClassVar[int] = 0

    @classmethod
    def fraction_bits(cls, profile: str) -> int:
        """Fraction bits of a number."""
        return 44

    @classmethod
    def noise(cls, profile: str, members: int) -> float:
        """Absolute error of one small sum, by which solvers decide."""
        # A contribution is rounded by half of its last bit at most.
        return members * 2.0 ** -(cls.fraction_bits(profile) + 1)

    @classmethod
    def limit(cls, profile: str) -> float:
        """Absolute values of a sum must stay below."""
        return 2.0 ** (SUM_BITS - cls.fraction_bits(profile))

    @classmethod
    def multiple(cls, profile: str, numbers: int) -> int:
        """What the length of a block is rounded up to: at most 64, and about 1.5 % of it."""
        share = max(_LEAST_MULTIPLE, numbers // _LARGEST_MULTIPLE)
        return min(_LARGEST_MULTIPLE, 1 << (share.bit_length() - 1))

    @classmethod
    def ciphertexts(cls, profile: str, numbers: int) -> int:
        """Ciphertexts of a contribution of so many numbers; 0: there are none."""
        return 0

    @classmethod
    def body_bytes(cls, profile: str, this: Sum, *, summed: bool) -> int:
        """Bytes of a sum or of one contribution to it, header not counted."""
        return 8 * (this.length + SLOTS)

    @classmethod
    def new_public_key(cls, profile: str, seed: bytes) -> bytes:
        """Public key for the block sums of a member, drawn for a secret seed; empty: no need."""
        return b""

    @classmethod
    def public_key_bytes(cls, profile: str) -> int:
        """Bytes of such a key."""
        return 0
