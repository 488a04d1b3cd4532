"""The solvers by name."""

from collections.abc import Iterator

from fedlap_app.errors import ConfigError
from fedlap_app.spectral.operators import LocalOperator
from fedlap_app.spectral.solvers.arnoldi import Arnoldi
from fedlap_app.spectral.solvers.base import Array, Basis, Round, Solver, SolverSettings
from fedlap_app.spectral.solvers.block_lanczos import BlockLanczos
from fedlap_app.spectral.solvers.dcgs2 import Dcgs2
from fedlap_app.spectral.solvers.warm import WarmStart

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver for solver in (BlockLanczos, Dcgs2, Arnoldi)
}


def solver_class(name: str) -> type[Solver]:
    """The solver `name`, one of ``SOLVERS``."""
    if name not in SOLVERS:
        raise ConfigError(f"The solver is '{name}'; choose one of {', '.join(SOLVERS)}.")
    return SOLVERS[name]


def planned_solver(name: str, settings: SolverSettings) -> type[Solver]:
    """The solver that runs: one of ``SOLVERS``, or that which goes on from an old basis."""
    return WarmStart if settings.old else solver_class(name)


def make_solver(
    name: str,
    operator: LocalOperator,
    settings: SolverSettings,
    start: Array,
    basis: Basis | None = None,
) -> Solver:
    """One client's half of the solver `name`."""
    return solver_class(name)(operator, settings, start, basis)


def schedule(
    solver: str, settings: SolverSettings, *, phases: int = 1, spike: bool = False
) -> Iterator[Round]:
    """Rounds of a solver's steps before they run.

    Parameters
    ----------
    solver
        One of ``SOLVERS``.
    settings
        The solver's settings.
    phases
        Rounds of block products per step, 2 for ``directed`` (default: 1).
    spike
        Whether the operator sums one more number per column, as ``regularised`` does.
    """
    for step in planned_solver(solver, settings).schedule(settings):
        if step.width:
            yield from (Round(step.width, 0) for _ in range(phases - 1))
        yield Round(step.width, step.small + step.width * spike)
