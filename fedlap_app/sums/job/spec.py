"""What the members of an offline phase agree on before it starts."""

import json
from dataclasses import dataclass

from fedlap_app.spectral.schedule import schedule
from fedlap_app.spectral.solvers import SolverSettings
from fedlap_app.sums.ckks.checks import SLOTS
from fedlap_app.sums.ckks.profiles import capacity_of
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.mask import fraction_bits

LAYOUTS = ("full", "boundary")
_DEVIATIONS = 6.0
_LARGEST_MULTIPLE = 64
_LEAST_MULTIPLE = 8


@dataclass(frozen=True)
class OfflineSpec:
    """Settings of the phase.

    Attributes
    ----------
    backend, operator, solver, keep, layout
        Names, see the settings of a run.
    vectors, rank, block
        Vectors exchanged, vectors kept (0: all) and columns of a block.
    self_loops
        Whether `sym` and `rw` add a loop at each node.
    regulariser
        t of the regularised operator; 0: the mean degree.
    hide_topology
        Whether everyone sends to everyone.
    directed
        Whether edges have a direction.
    rows
        Whether the job ends with the handshake, which names the rows that are learned together.
    profile
        Parameters of the back end; empty: its first ones.
    """

    backend: str
    operator: str
    solver: str
    vectors: int
    rank: int
    block: int
    keep: str
    layout: str
    self_loops: bool
    regulariser: float
    hide_topology: bool
    directed: bool
    rows: bool = False
    profile: str = ""

    def digest(self, seed: int | None) -> str:
        """Hash by which members compare; `seed` counts in a simulation, where secrets follow it."""
        return digest("offline", json.dumps([self.__dict__, seed], sort_keys=True))[:16].hex()

    @property
    def kept(self) -> int:
        """Vectors to keep."""
        return self.rank or self.vectors

    @property
    def width(self) -> int:
        """Columns of the usual block product."""
        return min(self.block, self.vectors) if self.solver == "block-lanczos" else 1

    @property
    def products(self) -> int:
        """Products that each vector of the basis takes."""
        return 2 if self.operator == "directed" else 1

    @property
    def loops(self) -> float:
        """Weight of self loops."""
        return 1.0 if self.self_loops else 0.0

    @property
    def shift(self) -> float | None:
        """The regulariser, None for the mean degree."""
        return self.regulariser or None

    def noise(self, members: int) -> float:
        """Absolute error of one small sum, by which solvers decide.

        `plain` is treated like `mask`, so that both decide alike and can be compared.
        """
        if self.backend == "ckks":
            return _DEVIATIONS * capacity_of(self.profile).noise(members, symmetric=True)
        # A contribution is rounded by half of its last bit at most.
        return members * 2.0 ** -(fraction_bits(self.profile) + 1)

    def solver_settings(self, members: int) -> SolverSettings:
        """What the solver needs to know."""
        return SolverSettings(self.vectors, self.block, self.noise(members))

    def multiple(self, rows: int) -> int:
        """What the length of a block is rounded up to: at most 64, and about 1.5 % of it.

        Ciphertexts are filled.
        """
        if self.backend == "ckks":
            return capacity_of(self.profile).slots
        share = max(_LEAST_MULTIPLE, rows * self.width // _LARGEST_MULTIPLE)
        return min(_LARGEST_MULTIPLE, 1 << (share.bit_length() - 1))

    @property
    def spare(self) -> int:
        """Numbers that are left free in the last ciphertext of a block, for check slots."""
        return SLOTS if self.backend == "ckks" else 0

    def rounds(self) -> int:
        """Round trips after the handshake when no direction is lost."""
        settings = SolverSettings(self.vectors, self.block)
        planned = schedule(self.solver, settings, phases=self.products)
        return sum(1 for _ in planned) + 2
