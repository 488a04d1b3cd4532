"""The programs of sealed sums, and how a name becomes one."""

from typing import Any

from fedlap_app.errors import ConfigError
from fedlap_app.knobs import nearest
from fedlap_app.sums.program import Program
from fedlap_app.sums.programs.feature_moments import FeatureMoments
from fedlap_app.sums.programs.krylov import Krylov, krylov_of
from fedlap_app.sums.programs.neighbour_sums import NeighbourSums
from fedlap_app.sums.programs.row_names import RowNames
from fedlap_app.sums.programs.training import Training
from fedlap_app.sums.programs.walks import Walks

__all__ = [
    "PROGRAMS",
    "FeatureMoments",
    "Krylov",
    "NeighbourSums",
    "RowNames",
    "Training",
    "Walks",
    "find_program",
    "krylov_of",
]

PROGRAMS: dict[str, type[Program]] = {
    program.name: program
    for program in (Krylov, RowNames, NeighbourSums, Walks, FeatureMoments, Training)
}


def find_program(program: str | Program, settings: Any) -> Program:  # noqa: ANN401 - a room above
    """The program itself, or that of a name as the settings of a run describe it."""
    if isinstance(program, Program):
        return program
    if program not in PROGRAMS:
        raise ConfigError(
            f"there is no program {program!r}: the nearest one is {nearest(program, PROGRAMS)!r}"
        )
    return PROGRAMS[program].from_settings(settings)
