"""Knobs of the spectral basis."""

from dataclasses import dataclass
from typing import ClassVar

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import Options, knob
from fedlap_app.spectral.operators import KINDS
from fedlap_app.spectral.ritz import KEEP
from fedlap_app.spectral.solvers import SOLVERS


@dataclass(frozen=True)
class BasisOptions(Options):
    """Which eigenvectors of which matrix, and how they are found."""

    title: ClassVar[str] = "Spectral basis"

    spectral: bool = knob(
        False, "compute the spectral basis also for methods that ignore it", advanced=True
    )
    operator: str = knob("regularised", "matrix whose eigenvectors are computed", choices=KINDS)
    self_loops: bool = knob(True, "add a loop at each node (operators sym and rw)", advanced=True)
    regulariser: float = knob(
        0.0, "t of the operator regularised; 0: the mean degree", low=0.0,
        only=("operator", ("regularised",)), advanced=True,
    )  # fmt: skip
    solver: str = knob(
        "block-lanczos", "how the basis is computed", choices=tuple(SOLVERS), advanced=True
    )
    vectors: int = knob(100, "vectors that are exchanged", low=1, high=10_000)
    rank: int = knob(0, "eigenvectors that are kept; 0: as many as vectors", low=0, high=10_000)
    keep: str = knob("smallest", "which eigenvalues are kept", choices=KEEP)
    start_basis: str = knob(
        "",
        "job whose basis, on the graph as it was, is the start; empty: a random start",
        advanced=True,
    )
    keep_basis: bool = knob(
        False, "take that basis as it is, with rows for new nodes from their neighbours'",
        advanced=True,
    )  # fmt: skip
    exchange_rows: bool = knob(
        False,
        "get rows of new nodes, and of those who joined, from a sealed sum over all neighbours",
        advanced=True,
    )
    block: int = knob(10, "vectors that are exchanged at once", low=1, high=1_000, advanced=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank > self.vectors:
            raise ConfigError(
                f"rank = {self.rank} is more than vectors = {self.vectors}: no more vectors can be "
                f"kept than are exchanged, try rank = {self.vectors}"
            )

        if self.keep_basis and not self.start_basis:
            raise ConfigError(
                "keep-basis = true keeps no basis without one: name its job in start-basis"
            )
        if self.exchange_rows and not self.start_basis:
            raise ConfigError(
                "exchange-rows = true sums rows of an old basis: name its job in start-basis"
            )
        if self.exchange_rows and self.operator == "directed":
            raise ConfigError(
                "exchange-rows = true sums over neighbours, and rows of operator = 'directed' are "
                "not alike at neighbours: leave it out"
            )
        if self.start_basis and not self.start_basis.isalnum():
            raise ConfigError(
                f"start-basis = '{self.start_basis}' is no job id: offline.json of a run folder "
                "names one"
            )

    @property
    def kept(self) -> int:
        """Columns of the basis."""
        return self.rank or self.vectors
