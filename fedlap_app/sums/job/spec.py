"""What the members of an offline phase agree on before it starts."""

import json
from dataclasses import dataclass

from fedlap_app.sums.ckks.checks import SLOTS
from fedlap_app.sums.ckks.profiles import capacity_of
from fedlap_app.sums.fixed import SUM_BITS
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.mask import fraction_bits
from fedlap_app.sums.program import Extent, Program

LAYOUTS = ("full", "boundary")
_DEVIATIONS = 6.0
_LARGEST_MULTIPLE = 64
_LEAST_MULTIPLE = 8


@dataclass(frozen=True)
class OfflineSpec:
    """Settings of the phase.

    Attributes
    ----------
    program
        What the sums are for.
    backend, layout
        Names, see the settings of a run.
    hide_topology
        Whether everyone sends to everyone.
    directed
        Whether edges have a direction.
    profile
        Parameters of the back end; empty: its first ones.
    """

    program: Program
    backend: str
    layout: str
    hide_topology: bool
    directed: bool
    profile: str = ""

    def digest(self, seed: int | None) -> str:
        """Hash by which members compare; `seed` counts in a simulation, where secrets follow it."""
        agreed = {name: value for name, value in self.__dict__.items() if name != "program"}
        agreed |= self.program.agreed()
        return digest("offline", json.dumps([agreed, seed], sort_keys=True))[:16].hex()

    def noise(self, members: int) -> float:
        """Absolute error of one small sum, by which solvers decide.

        `plain` is treated like `mask`, so that both decide alike and can be compared.
        """
        if self.backend == "ckks":
            return _DEVIATIONS * capacity_of(self.profile).noise(members, symmetric=True)
        # A contribution is rounded by half of its last bit at most.
        return members * 2.0 ** -(fraction_bits(self.profile) + 1)

    @property
    def limit(self) -> float:
        """Absolute values of a sum must stay below; `plain` is treated like `mask`."""
        if self.backend == "ckks":
            return capacity_of(self.profile).limit
        return 2.0 ** (SUM_BITS - fraction_bits(self.profile))

    def multiple(self, rows: int) -> int:
        """What the length of a block is rounded up to: at most 64, and about 1.5 % of it.

        Ciphertexts are filled.
        """
        if self.backend == "ckks":
            return capacity_of(self.profile).slots
        share = max(_LEAST_MULTIPLE, rows * self.program.width // _LARGEST_MULTIPLE)
        return min(_LARGEST_MULTIPLE, 1 << (share.bit_length() - 1))

    @property
    def spare(self) -> int:
        """Numbers that are left free in the last ciphertext of a block, for check slots."""
        return SLOTS if self.backend == "ckks" else 0

    def rounds(self, extent: Extent = Extent()) -> int:  # noqa: B008 - frozen
        """Round trips after the handshake when no direction is lost."""
        return self.program.rounds(extent)
