"""The solvers by name."""

from fedlap_app.errors import ConfigError
from fedlap_app.spectral.operators import LocalOperator
from fedlap_app.spectral.solvers.arnoldi import Arnoldi
from fedlap_app.spectral.solvers.base import Array, Basis, Solver, SolverSettings
from fedlap_app.spectral.solvers.block_lanczos import BlockLanczos
from fedlap_app.spectral.solvers.dcgs2 import Dcgs2

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (BlockLanczos, Dcgs2, Arnoldi)
}


def make_solver(
    name: str,
    operator: LocalOperator,
    settings: SolverSettings,
    start: Array,
    basis: Basis | None = None,
) -> Solver:
    """One client's half of the solver ``name``, one of ``SOLVERS``."""
    if name not in SOLVERS:
        raise ConfigError(f"The solver is '{name}'; choose one of {', '.join(SOLVERS)}.")
    return SOLVERS[name](operator, settings, start, basis)
