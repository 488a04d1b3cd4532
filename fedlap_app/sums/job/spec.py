"""What the members of an offline phase agree on before it starts."""

import json
from dataclasses import dataclass

from fedlap_app.sums.backend import SumBackend
from fedlap_app.sums.choice import backend_class
from fedlap_app.sums.kdf import digest
from fedlap_app.sums.program import Extent, Program

LAYOUTS = ("full", "boundary")


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

    @property
    def facts(self) -> type[SumBackend]:
        """The back end, by which its precision and its sizes are asked."""
        return backend_class(self.backend, self.profile)

    def noise(self, members: int) -> float:
        """Absolute error of one small sum, by which solvers decide."""
        return self.facts.noise(self.profile, members)

    @property
    def limit(self) -> float:
        """Absolute values of a sum must stay below."""
        return self.facts.limit(self.profile)

    def multiple(self, rows: int) -> int:
        """What the length of a block is rounded up to."""
        return self.facts.multiple(self.profile, rows * self.program.width)

    def rounds(self, extent: Extent = Extent()) -> int:  # noqa: B008 - frozen
        """Round trips after the handshake when no direction is lost."""
        return self.program.rounds(extent)
