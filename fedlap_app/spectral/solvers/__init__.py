"""Krylov solvers that many clients run together, one round of sums after the other."""

from fedlap_app.spectral.solvers.base import Basis, Contribution, Round, Solver, SolverSettings
from fedlap_app.spectral.solvers.names import (
    SOLVERS,
    make_solver,
    planned_solver,
    schedule,
    solver_class,
)

__all__ = [
    "SOLVERS",
    "Basis",
    "Contribution",
    "Round",
    "Solver",
    "SolverSettings",
    "make_solver",
    "planned_solver",
    "schedule",
    "solver_class",
]
