"""The program `krylov`: a spectral basis by a Krylov iteration over the whole graph.

Its first sums are the totals of the graph, from which operator and solver are made; the solver's
rounds follow. The leader solves the small eigenproblem for all.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral import totals as totals_of
from fedlap_app.spectral.certificate import Certificate, quality
from fedlap_app.spectral.operators import UNNORMALISED, LocalOperator, make_operator
from fedlap_app.spectral.ritz import solve_small
from fedlap_app.spectral.schedule import Round, schedule
from fedlap_app.spectral.solvers import Contribution, Solver, SolverSettings, make_solver
from fedlap_app.spectral.start import start_block
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.bases import Bases, BasisFacts, FinishedBasis
from fedlap_app.sums.job.columns import Columns
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts
from fedlap_app.sums.program import Array, Extent, Footprint, Half, Program, Site, State

if TYPE_CHECKING:
    from fedlap_app.sums.job.spec import OfflineSpec

_QUALITY = struct.Struct("<dd")
_NUMBER = 8


@dataclass(frozen=True)
class Krylov(Program):
    """Settings of the iteration.

    Attributes
    ----------
    operator, solver, keep
        Names, see the settings of a run.
    vectors, rank, block
        Vectors exchanged, vectors kept (0: all) and columns of a block.
    self_loops
        Whether `sym` and `rw` add a loop at each node.
    regulariser
        t of the regularised operator; 0: the mean degree.
    """

    operator: str
    solver: str
    vectors: int
    rank: int
    block: int
    keep: str
    self_loops: bool
    regulariser: float

    name: ClassVar[str] = "krylov"
    solution: ClassVar[str] = "ritz"

    @classmethod
    def from_settings(cls, settings: Any) -> "Krylov":  # noqa: ANN401 - a room above
        """What the settings of a run say of a basis."""
        return cls(
            operator=settings.operator,
            solver=settings.solver,
            vectors=settings.vectors,
            rank=settings.rank,
            block=settings.block,
            keep=settings.keep,
            self_loops=settings.self_loops,
            regulariser=settings.regulariser,
        )

    def agreed(self) -> dict[str, Any]:
        """All settings; the last one tells stored bases from jobs that named rows only."""
        return {**asdict(self), "rows": False}

    @property
    def kept(self) -> int:
        """Vectors to keep."""
        return self.rank or self.vectors

    @property
    def width(self) -> int:
        """Columns of the usual block product."""
        return min(self.block, self.vectors) if self.solver == "block-lanczos" else 1

    @property
    def allowed_operator(self) -> str:
        """The operator."""
        return self.operator

    @property
    def products(self) -> int:
        """Products that each vector of the basis takes."""
        return 2 if self.operator == "directed" else 1

    @property
    def large_sums(self) -> bool:
        """Whether images of vectors grow with the degrees."""
        return self.operator in UNNORMALISED

    @property
    def loops(self) -> float:
        """Weight of self loops."""
        return 1.0 if self.self_loops else 0.0

    @property
    def shift(self) -> float | None:
        """The regulariser, None for the mean degree."""
        return self.regulariser or None

    def solver_settings(self, noise: float) -> SolverSettings:
        """What the solver needs to know, with the error of a sum."""
        return SolverSettings(self.vectors, self.block, noise)

    def rows_of(self, subgraph: Subgraph) -> tuple[Any, Any | None]:
        """Rows of the adjacency matrix, and of its transpose where direction counts."""
        if not subgraph.directed:
            return subgraph.out_adjacency(), None
        if self.operator == "directed":
            return subgraph.out_adjacency(), subgraph.in_adjacency()
        return subgraph.symmetric_adjacency(), None

    def operator_of(self, rows: tuple[Any, Any | None], totals: totals_of.Totals) -> LocalOperator:
        """A member's part of the operator."""
        return make_operator(
            self.operator,
            rows[0],
            totals,
            incoming=rows[1],
            self_loops=self.loops,
            regulariser=self.shift,
        )

    def _found(self, extent: Extent) -> int:
        """Vectors that a graph of this size has."""
        return min(self.vectors, extent.nodes or self.vectors)

    def schedule(self, extent: Extent) -> Iterator[Round]:
        """The totals, then the solver's rounds."""
        vectors = self._found(extent)
        yield Round(0, totals_of.LENGTH)
        yield from schedule(
            self.solver,
            SolverSettings(vectors, min(self.block, vectors)),
            phases=self.products,
            spike=self.operator == "regularised",
        )

    def columns(self, extent: Extent) -> int:
        """All vectors with their products, whether the graph has so many or not."""
        return self.vectors * self.products

    def describe(self, extent: Extent) -> str:
        """Operator, vectors, blocks and solver."""
        return (
            f"{self.operator}, {self.vectors} vectors in blocks of {self.block}, {self.solver}, "
            "if no direction is lost"
        )

    def is_exact(self, extent: Extent) -> bool:
        """Whether the graph has more nodes than vectors, so that the iteration cannot end early."""
        return self.vectors < extent.nodes

    def solution_bytes(self, extent: Extent) -> tuple[int, ...]:
        """Eigenvectors of the small problem, eigenvalues, and two measures of quality."""
        vectors = self._found(extent)
        kept = min(self.kept, vectors)
        return _NUMBER * vectors * kept, _NUMBER * kept, _QUALITY.size

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """Q, and Z where the solver keeps it; the finished rows; the block and small matrices."""
        vectors = self._found(extent)
        kept = min(self.kept, vectors)
        matrices = 1 if self.solver == "arnoldi" else 2
        width = max(this.width for this in self.schedule(extent))
        return Footprint(
            multiplications=rows * self._multiplications(vectors, kept, extent),
            held=matrices * _NUMBER * rows * vectors,
            left=_NUMBER * rows * kept,
            state=_NUMBER * (2 * rows * width + 2 * vectors**2),
        )

    def _multiplications(self, vectors: int, kept: int, extent: Extent) -> int:
        """Multiplications with one own row of Q and Z."""
        last = 3 * vectors**2 + vectors * kept
        if self.solver == "arnoldi":
            return last + vectors**2
        if self.solver == "dcgs2":
            return last + 5 * vectors**2 // 2
        columns = total = 0
        for this in self.schedule(extent):
            if this.width:
                total += 4 * columns * this.width + 6 * this.width**2
                columns += this.width
        return last + total

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What the rest of an audit puts into numbers."""
        exchanged = self.columns(Extent())
        return {
            "says": [
                f"Every organisation learns, of each of the {exchanged} vectors exchanged, the sum "
                "over the foreign neighbours of every own node, weighted by the operator.",
                "All learn the eigenvalues and totals of the graph: nodes, edges, and the power of "
                "two above the largest degree.",
            ],
            "columns": exchanged,
        }

    def results(self, root: Path, *, durable: bool) -> Bases:
        """Finished bases of a store."""
        return Bases(root / "basis", durable=durable)

    def half(self, site: Site) -> "KrylovHalf":
        """A member's half."""
        return KrylovHalf(self, site)


def krylov_of(spec: "OfflineSpec") -> Krylov:
    """The iteration that a phase runs, for those who study it."""
    if isinstance(spec.program, Krylov):
        return spec.program
    raise ConfigError(
        f"the program {spec.program.name} computes no spectral basis: try method = 'fedlap+'"
    )


class KrylovHalf(Half):
    """One member's half of the iteration.

    Attributes
    ----------
    totals
        The summed totals of the graph (none before the first sums).
    solver
        The member's half of the solver (none before the first sums).
    """

    def __init__(self, program: Krylov, site: Site) -> None:
        self.program = program
        self.site = site
        self.totals: Array = np.zeros(0)
        self.solver: Solver | None = None
        self._columns: Columns | None = None
        self._rows = program.rows_of(site.subgraph)

    @property
    def done(self) -> bool:
        """Whether only the small eigenproblem is left."""
        return self.solver is not None and self.solver.done

    @property
    def exchanged(self) -> int:
        """Vectors of the basis so far."""
        return 0 if self.solver is None else self.solver.columns

    @property
    def small_kind(self) -> str:
        """Totals at first."""
        return "totals of the graph" if self.solver is None else "small sums"

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
        if self.solver is None:
            return Contribution(None, totals_of.contribution(*self._rows))
        return self.solver.contribute()

    def absorb(self, received: Array | None, small: Array) -> None:
        """Make the solver from the totals, or let it go on."""
        if self.solver is None:
            self._prepare(small)
        else:
            self.solver.absorb(received, small)

    def _prepare(self, sums: Array) -> None:
        """Make the solver."""
        program, site = self.program, self.site
        totals = totals_of.Totals.from_sums(sums)
        rows = site.subgraph.num_nodes
        start = start_block(
            site.secrets.organisation,
            site.secrets.start_label(site.job),
            rows,
            min(program.block, program.vectors),
            totals.nodes,
        )
        self._columns = Columns(site.files, rows, program.vectors)
        self.totals = np.array(sums)
        self.solver = make_solver(
            program.solver,
            program.operator_of(self._rows, totals),
            program.solver_settings(site.spec.noise(site.members)),
            start,
            self._columns.basis,
        )

    def settle(self) -> State:
        """State of the solver, and the totals that it was made from."""
        if self.solver is None:
            return {}
        state = self.solver.state()
        self.solver.restore(state)
        return {**state, "totals": self.totals}

    def restore(self, state: State, stored: Data) -> None:
        """Go on from a stored state and the columns that were stored with it."""
        if not state:
            return
        self._prepare(np.asarray(state.pop("totals"), dtype=np.float64))
        self.running.restore(state)
        if self._columns is not None:
            self._columns.load(self.running.columns, stored)

    def stored(self) -> list[Data]:
        """The newest columns; others may go to a file of their own."""
        return self._columns.save(self.exchanged) if self._columns is not None else []

    def solve(self) -> list[Data]:
        """Solution of the small eigenproblem, and its quality."""
        problem = self.finished.problem()
        solution = solve_small(problem, self.program.kept, self.program.keep)
        return [
            np.ascontiguousarray(solution.Y, dtype="<f8").tobytes(),
            np.ascontiguousarray(solution.eigenvalues, dtype="<f8").tobytes(),
            _QUALITY.pack(*quality(problem, solution)),
        ]

    @property
    def solution_numbers(self) -> int:
        """Eigenvectors of the small problem, eigenvalues and two measures of quality."""
        vectors = self.exchanged
        kept = min(self.program.kept, vectors)
        return vectors * kept + kept + 2

    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> FinishedBasis:
        """The own rows of the basis, from the leader's solution and the price of the run."""
        solver = self.finished
        if len(parts) != 3 or price is None:
            raise ProtocolError("The leader's solution lacks a part; let all run one release.")
        eigenvalues, Y, (orthogonality, residual) = _read(*parts, columns=solver.columns)
        certificate = Certificate(
            orthogonality=orthogonality,
            residual_max=residual,
            vectors=solver.columns,
            rank=int(eigenvalues.size),
            round_trips=price.round_trips,
            bytes_up=price.bytes_up,
            bytes_down=price.bytes_down,
            seconds=float(price.seconds),
        )
        nodes = totals_of.Totals.from_sums(self.totals).nodes
        told = BasisFacts(**facts.__dict__, nodes=nodes)
        return FinishedBasis(solver.finish(Y), eigenvalues, certificate, told)


def _read(
    vectors: Data, values: Data, measures: Data, *, columns: int
) -> tuple[NDArray[np.float64], Array, tuple[float, float]]:
    """Eigenvalues, eigenvectors of the small problem and quality, by the leader."""
    rank, rest = divmod(len(values), _NUMBER)
    fits = not rest and 1 <= rank <= columns and len(vectors) == len(values) * columns
    if not fits or len(measures) != _QUALITY.size:
        raise ProtocolError(
            f"The leader's solution does not fit {columns} vectors; start a new job."
        )
    eigenvalues = np.frombuffer(values, "<f8").copy()
    Y = np.frombuffer(vectors, "<f8").reshape(columns, rank).copy()
    orthogonality, residual = _QUALITY.unpack(measures)
    numbers = np.concatenate([eigenvalues, Y.ravel(), (orthogonality, residual)])
    if not np.isfinite(numbers).all():
        raise ProtocolError(
            "The leader's solution has values that are not finite numbers; start a new job."
        )
    return eigenvalues, Y, (orthogonality, residual)
