"""Profiles of the back end ckks by name, with or without pads."""

from typing import Protocol

from fedlap_app.sums.ckks.parameters import CKKS_2048, PARAMETERS
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT

NO_PADS = "insecure-no-pads"
_SEPARATOR = "+"


class Capacity(Protocol):
    """What ciphertexts of a profile hold."""

    @property
    def name(self) -> str:
        """The profile."""

    @property
    def slots(self) -> int:
        """Real numbers in a ciphertext."""

    def ciphertexts(self, numbers: int) -> int:
        """Ciphertexts for so many real numbers."""


CAPACITIES: dict[str, Capacity] = {**PARAMETERS, TENSEAL_DEFAULT.name: TENSEAL_DEFAULT}


def base_of(profile: str) -> str:
    """Name of the parameters of a profile; empty: the usual ones."""
    return profile.partition(_SEPARATOR)[0] or CKKS_2048.name


def capacity_of(profile: str) -> Capacity:
    """What ciphertexts of a profile hold."""
    return CAPACITIES[base_of(profile)]


def without_pads(profile: str) -> str:
    """The same profile without pads."""
    return f"{profile}{_SEPARATOR}{NO_PADS}"


def is_padded(profile: str) -> bool:
    """Whether pads lie inside of the ciphertexts."""
    return not profile.endswith(NO_PADS)


def with_warning(profile: str, weakness: str) -> str:
    """What a run is warned of, pads that are left out before all else."""
    without = (
        f"{NO_PADS} leaves out the pads inside of the ciphertexts: whoever holds a key and "
        "gets single ciphertexts from the server reads single contributions; use it for "
        "measurements only."
    )
    return " ".join(filter(None, ("" if is_padded(profile) else without, weakness)))
