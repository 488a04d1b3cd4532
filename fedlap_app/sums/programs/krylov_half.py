"""One member's half of the program `krylov`: totals, the solver, its rows of the basis."""

import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.spectral import totals as totals_of
from fedlap_app.spectral.certificate import Certificate, quality
from fedlap_app.spectral.operators import LocalOperator
from fedlap_app.spectral.ritz import solve_small
from fedlap_app.spectral.solvers import Contribution, Solver, make_solver
from fedlap_app.spectral.solvers.warm import WarmStart, widths
from fedlap_app.spectral.start import start_block
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.bases import BasisFacts, FinishedBasis
from fedlap_app.sums.job.columns import Columns
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts
from fedlap_app.sums.program import Array, Half, Site, State
from fedlap_app.sums.programs.row_exchange import RowExchange

if TYPE_CHECKING:
    from fedlap_app.sums.programs.krylov import Krylov

QUALITY = struct.Struct("<dd")
_NUMBER = 8


class KrylovHalf(Half):
    """One member's half of the iteration.

    Attributes
    ----------
    totals
        The summed totals of the graph (none before the first sums).
    solver
        The member's half of the solver (none before the first sums).
    exchange
        Its half of the sum over neighbours' old rows (none before the totals, or without one).
    """

    def __init__(self, program: "Krylov", site: Site) -> None:
        self.program = program
        self.site = site
        self.totals: Array = np.zeros(0)
        self.solver: Solver | None = None
        self.exchange: RowExchange | None = None
        self._columns: Columns | None = None
        self._rows = program.rows_of(site.subgraph)
        self._operator: LocalOperator | None = None

    @property
    def done(self) -> bool:
        """Whether only the small eigenproblem is left."""
        return self._is_kept or (self.solver is not None and self.solver.done)

    @property
    def _is_kept(self) -> bool:
        """Whether the old rows are the result, with the summed ones."""
        summed = self.exchange is not None and self.exchange.told.size > 0
        return self.program.keep_start and summed

    @property
    def exchanged(self) -> int:
        """Vectors of the basis so far."""
        return 0 if self.solver is None else self.solver.columns

    @property
    def small_kind(self) -> str:
        """Totals at first."""
        return "small sums" if self.totals.size else "totals of the graph"

    @property
    def running(self) -> Solver:
        """The solver, when the totals are known."""
        if self.solver is None:
            raise ProtocolError("The totals of the graph are not known yet; start a new job.")
        return self.solver

    @property
    def finished(self) -> Solver:
        """The solver, when it is done."""
        if self.solver is None or not self.solver.done:
            raise ProtocolError("The iteration is not over; the message came too early.")
        return self.solver

    def contribute(self) -> Contribution:
        """The own part of the totals, or of the solver's round."""
        if self.solver is not None:
            return self.solver.contribute()
        if self.exchange is not None:
            return self.exchange.contribute()
        return Contribution(None, totals_of.contribution(*self._rows))

    def absorb(self, received: Array | None, small: Array) -> None:
        """Make the solver from the totals, or let it go on."""
        if self.solver is not None:
            self.solver.absorb(received, small)
        elif self.exchange is not None:
            self.exchange.absorb(received, small)
            self._start_warm(self.exchange.rows.U, self.exchange.values)
        else:
            self._prepare(small)

    def _prepare(self, sums: Array) -> None:
        """Make the solver."""
        program, site = self.program, self.site
        totals = totals_of.Totals.from_sums(sums)
        rows = site.subgraph.num_nodes
        self.totals = np.array(sums)
        if program.start:
            self._prepare_warm(totals)
            return
        start = start_block(
            site.secrets.organisation,
            site.secrets.start_label(site.job),
            rows,
            min(program.block, program.vectors),
            totals.nodes,
        )
        self._columns = Columns(site.files, rows, program.vectors)
        self.solver = make_solver(
            program.solver,
            program.operator_of(self._rows, totals),
            program.solver_settings(site.spec.noise(site.members)),
            start,
            self._columns.basis,
        )

    def _prepare_warm(self, totals: totals_of.Totals) -> None:
        """Make what goes on from an old basis."""
        program, site = self.program, self.site
        self._operator = program.operator_of(self._rows, totals)
        if program.exchange_rows:
            self.exchange = RowExchange(program, site, totals, self._operator.unit)
            return
        old = program.start_of(site.subgraph, site.root)
        rows = program.fitted(old, site.subgraph).U
        self._start_warm(rows, np.array(old.eigenvalues) / self._operator.unit)

    def _start_warm(self, rows: Array, values: Array) -> None:
        """Make the solver that goes on from old rows."""
        program, site = self.program, self.site
        if program.keep_start or self._operator is None:
            return
        size = values.size + sum(widths(values.size, program.budget))
        self._columns = Columns(site.files, site.subgraph.num_nodes, size)
        self.solver = WarmStart(
            self._operator,
            program.solver_settings(site.spec.noise(site.members)),
            self._operator.unpresent(rows),
            values,
            self._columns.basis,
        )

    def settle(self) -> State:
        """State of the solver, and what it was made from."""
        state: State = {"totals": self.totals} if self.totals.size else {}
        if self.exchange is not None and self.exchange.told.size:
            state.update(self.exchange.state())
        if self.solver is not None:
            found = self.solver.state()
            self.solver.restore(found)
            state.update(found)
        return state

    def restore(self, state: State, stored: Data) -> None:
        """Go on from a stored state and the columns that were stored with it."""
        if not state:
            return
        self._prepare(np.asarray(state.pop("totals"), dtype=np.float64))
        if self.exchange is not None and "told" in state:
            self.exchange.restore(state)
            self._start_warm(self.exchange.rows.U, self.exchange.values)
        if self.solver is not None:
            self.solver.restore(state)
        if self._columns is not None:
            self._columns.load(self.running.columns, stored)

    def stored(self) -> list[Data]:
        """The newest columns; others may go to a file of their own."""
        return self._columns.save(self.exchanged) if self._columns is not None else []

    def solve(self) -> list[Data]:
        """Solution of the small eigenproblem, and its quality."""
        if self._is_kept and self.exchange is not None:
            values = np.ascontiguousarray(self.exchange.values * self.exchange.unit, dtype="<f8")
            return [b"", values.tobytes(), QUALITY.pack(*self.exchange.quality)]
        problem = self.finished.problem()
        solution = solve_small(problem, self.program.kept, self.program.keep)
        measures = quality(problem, solution)
        if isinstance(self.solver, WarmStart):
            solution = self.solver.turned(solution)
        return [
            np.ascontiguousarray(solution.Y, dtype="<f8").tobytes(),
            np.ascontiguousarray(solution.eigenvalues, dtype="<f8").tobytes(),
            QUALITY.pack(*measures),
        ]

    @property
    def solution_numbers(self) -> int:
        """Eigenvectors of the small problem, eigenvalues and two measures of quality."""
        if self._is_kept and self.exchange is not None:
            return self.exchange.rank + 2
        vectors = self.exchanged
        kept = min(self.program.kept, vectors)
        return vectors * kept + kept + 2

    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> FinishedBasis:
        """The own rows of the basis, from the leader's solution and the price of the run."""
        if len(parts) != 3 or price is None:
            raise ProtocolError("The leader's solution lacks a part; let all run one release.")
        columns = 0 if self._is_kept else self.finished.columns
        eigenvalues, Y, (orthogonality, residual) = _read(*parts, columns=columns)
        certificate = Certificate(
            orthogonality=orthogonality,
            residual_max=residual,
            vectors=columns,
            rank=int(eigenvalues.size),
            round_trips=price.round_trips,
            bytes_up=price.bytes_up,
            bytes_down=price.bytes_down,
            seconds=float(price.seconds),
        )
        totals = totals_of.Totals.from_sums(self.totals)
        told = BasisFacts(**facts.__dict__, nodes=totals.nodes, mean_degree=totals.mean_degree)
        snapshot = Snapshot.of(self.site.subgraph).pack()
        if self._is_kept and self.exchange is not None:
            rows, told = self.exchange.rows, replace(told, drift=self.exchange.drift)
            return FinishedBasis(rows.U, eigenvalues, certificate, told, snapshot, rows.codes)
        return FinishedBasis(self.finished.finish(Y), eigenvalues, certificate, told, snapshot)


def _read(
    vectors: Data, values: Data, measures: Data, *, columns: int
) -> tuple[NDArray[np.float64], Array, tuple[float, float]]:
    """Eigenvalues, eigenvectors of the small problem and quality, by the leader."""
    rank, rest = divmod(len(values), _NUMBER)
    fits = not rest and rank >= 1 and len(vectors) == len(values) * columns
    fits = fits and (rank <= columns or not columns)
    if not fits or len(measures) != QUALITY.size:
        raise ProtocolError(
            f"The leader's solution does not fit {columns} vectors; start a new job."
        )
    eigenvalues = np.frombuffer(values, "<f8").copy()
    Y = np.frombuffer(vectors, "<f8").reshape(columns, rank).copy()
    orthogonality, residual = QUALITY.unpack(measures)
    numbers = np.concatenate([eigenvalues, Y.ravel(), (orthogonality, residual)])
    if not np.isfinite(numbers).all():
        raise ProtocolError(
            "The leader's solution has values that are not finite numbers; start a new job."
        )
    return eigenvalues, Y, (orthogonality, residual)
