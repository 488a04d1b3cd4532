"""The rounds of a solver before it runs: what each one carries, without any rank deficiency."""

from collections.abc import Iterator
from dataclasses import dataclass

from fedlap_app.errors import ConfigError
from fedlap_app.spectral.solvers import SOLVERS, SolverSettings


@dataclass(frozen=True)
class Round:
    """What one round carries: columns of the block product, and small numbers."""

    width: int
    small: int


def schedule(
    solver: str, settings: SolverSettings, *, phases: int = 1, spike: bool = False
) -> Iterator[Round]:
    """Rounds of ``solver``, as if all vectors were found and no block had to be repeated.

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
    if solver not in SOLVERS:
        raise ConfigError(f"The solver is '{solver}'; choose one of {', '.join(SOLVERS)}.")
    steps = {"block-lanczos": _block_lanczos, "dcgs2": _dcgs2, "arnoldi": _arnoldi}[solver]
    for step in steps(settings):
        if step.width:
            yield from (Round(step.width, 0) for _ in range(phases - 1))
        yield Round(step.width, step.small + step.width * spike)


def _block_lanczos(settings: SolverSettings) -> Iterator[Round]:
    columns = last = 0
    while columns < settings.vectors:
        width = min(settings.block, settings.vectors - columns)
        yield Round(width, columns * (last + width) + width * (width + 1) // 2)
        columns, last = columns + width, width
    yield Round(0, 3 * (columns * (columns + 1) // 2))


def _dcgs2(settings: SolverSettings) -> Iterator[Round]:
    for columns in range(settings.vectors):
        yield Round(1, 0)
        yield Round(0, 2 * columns + 3)
    yield Round(0, 3 * (settings.vectors * (settings.vectors + 1) // 2))


def _arnoldi(settings: SolverSettings) -> Iterator[Round]:
    yield Round(0, 1)
    for columns in range(1, settings.vectors + 1):
        yield Round(1, 0)
        yield from (Round(0, 1) for _ in range(columns + 1))
    size = settings.vectors + 1
    yield Round(0, size * (size + 1) // 2)
