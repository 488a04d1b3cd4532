"""Krylov solvers that many clients run together, one round of sums after the other."""

from fedlap_app.spectral.solvers.base import Basis, Contribution, Solver, SolverSettings
from fedlap_app.spectral.solvers.names import SOLVERS, make_solver

__all__ = ["SOLVERS", "Basis", "Contribution", "Solver", "SolverSettings", "make_solver"]
