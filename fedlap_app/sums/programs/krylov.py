"""The program `krylov`: a spectral basis by a Krylov iteration over the whole graph.

Its first sums are the totals of the graph, from which operator and solver are made; the solver's
rounds follow. The leader solves the small eigenproblem for all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral import totals as totals_of
from fedlap_app.spectral.averaging import Averaging
from fedlap_app.spectral.extension import Rows
from fedlap_app.spectral.operators import UNNORMALISED, LocalOperator, make_operator
from fedlap_app.spectral.solvers import Round, SolverSettings, planned_solver, schedule
from fedlap_app.sums.job.bases import Bases, BasisFacts, FinishedBasis
from fedlap_app.sums.program import Extent, Footprint, Program, Site
from fedlap_app.sums.programs.krylov_half import QUALITY, KrylovHalf
from fedlap_app.sums.programs.row_exchange import MORE

if TYPE_CHECKING:
    from fedlap_app.sums.job.spec import OfflineSpec

Array = NDArray[np.float64]
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
    start
        Job whose basis is the start; empty: random vectors.
    keep_start
        Whether that basis is taken as it is, without a product of its vectors.
    exchange_rows
        Whether nodes without a row get one from a sealed sum over all their neighbours.
    """

    operator: str
    solver: str
    vectors: int
    rank: int
    block: int
    keep: str
    self_loops: bool
    regulariser: float
    start: str = ""
    keep_start: bool = False
    exchange_rows: bool = False

    name: ClassVar[str] = "krylov"
    solution: ClassVar[str] = "ritz"
    kept_as: ClassVar[str] = "basis"

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
            start=settings.start_basis,
            keep_start=settings.keep_basis,
            exchange_rows=settings.exchange_rows,
        )

    def agreed(self) -> dict[str, Any]:
        """All settings; the last one tells stored bases from jobs that named rows only."""
        found = {**asdict(self), "rows": False}
        if not self.start:  # bases of a version that knew of no other start are found by the rest
            del found["start"], found["keep_start"]
        if not self.exchange_rows:
            del found["exchange_rows"]
        return found

    @property
    def kept(self) -> int:
        """Vectors to keep."""
        return self.rank or self.vectors

    @property
    def width(self) -> int:
        """Columns of the usual block product."""
        steps = schedule(self.solver, self.solver_settings(0.0))
        return next(step.width for step in steps if step.width)

    @property
    def budget(self) -> int:
        """Vectors to exchange: half of them suffice for who has a start."""
        return -(-self.vectors // 2) if self.start else self.vectors

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
        return SolverSettings(self.budget, self.block, noise, self._old)

    def averaging_of(self, mean_degree: float) -> Averaging:
        """How rows of a basis of a graph with this mean degree are extended to other nodes."""
        if self.operator == "regularised":
            return Averaging(self.operator, self.shift or mean_degree)
        return Averaging(self.operator, self.loops)

    def averaging(self, facts: BasisFacts) -> Averaging:
        """How rows of the basis are extended to nodes that have none."""
        return self.averaging_of(facts.mean_degree)

    def fitted(self, basis: FinishedBasis, part: Subgraph) -> Rows:
        """Rows of a basis for the nodes that a part has now."""
        if basis.graph is None or basis.facts.data == part.fingerprint():
            return basis.rows
        return self.averaging(basis.facts).fit(part, basis.graph, basis.rows)

    def find_start(self, part: Subgraph, root: Path) -> FinishedBasis | None:
        """The basis to start from, if an organisation's store has it."""
        return Bases(root / self.kept_as).of_job(self.start, part)

    def start_of(self, part: Subgraph, root: Path) -> FinishedBasis:
        """The basis to start from, as an organisation's store has it."""
        found = self.find_start(part, root)
        if found is None:
            raise RunError(
                f"its store holds no basis of job {self.start} for any of its nodes, from which "
                "start-basis lets the iteration start: leave start-basis out, or set "
                "exchange-rows, which brings rows to those who joined"
            )
        return found

    def prepare(self, part: Subgraph, root: Path, spec: str, data: str, *, durable: bool) -> None:
        """Keep the old basis for the data of now, if that is what was asked for."""
        if not self.keep_start or self.exchange_rows:
            return
        bases = self.results(root, durable=durable)
        if any((facts.data, facts.spec) == (data, spec) for facts in bases.facts()):
            return
        old = self.start_of(part, root)
        changed = 0.0 if old.graph is None else old.graph.changes(part).share
        facts = replace(old.facts, data=data, spec=spec, drift=old.facts.drift + changed)
        rows = self.fitted(old, part)
        packed = Snapshot.of(part).pack()
        bases.save(replace(old, U=rows.U, facts=facts, snapshot=packed, given=rows.codes))

    def _solver_of(self, vectors: int) -> SolverSettings:
        """Settings of a solver that finds so many vectors, or goes on from an old basis."""
        if self.start:
            return self.solver_settings(0.0)
        return SolverSettings(vectors, min(self.block, vectors))

    @property
    def _old(self) -> int:
        """Vectors of the basis to start from."""
        return self.kept if self.start else 0

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
        if self.exchange_rows:
            yield Round(self.kept + 1, self.kept + MORE)
        if self.exchange_rows and self.keep_start:
            return
        yield from schedule(
            self.solver,
            self._solver_of(vectors),
            phases=self.products,
            spike=self.operator == "regularised",
        )

    def columns(self, extent: Extent) -> int:
        """All vectors with their products, whether the graph has so many or not."""
        extended = (self.kept + 1) * self.exchange_rows
        if self.keep_start and self.exchange_rows:
            return extended
        return self.budget * self.products + extended

    def describe(self, extent: Extent) -> str:
        """Operator, vectors, blocks and solver."""
        if self.start:
            more = f", {self.kept + 1} columns of rows for new nodes" if self.exchange_rows else ""
            if self.keep_start:
                return f"{self.operator}, basis {self.start} as it is{more}"
            return (
                f"{self.operator}, {self.budget} vectors in two blocks, from basis {self.start}"
                f"{more}"
            )
        return (
            f"{self.operator}, {self.vectors} vectors in blocks of {self.block}, {self.solver}, "
            "if no direction is lost"
        )

    def is_exact(self, extent: Extent) -> bool:
        """Whether the graph has more nodes than vectors, so that the iteration cannot end early."""
        return self.vectors < extent.nodes

    def solution_bytes(self, extent: Extent) -> tuple[int, ...]:
        """Eigenvectors of the small problem, eigenvalues, and two measures of quality."""
        if self.keep_start:
            return 0, _NUMBER * self.kept, QUALITY.size
        vectors = self._found(extent)
        kept = min(self.kept, vectors)
        return _NUMBER * vectors * kept, _NUMBER * kept, QUALITY.size

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """Q, and Z where the solver keeps it; the finished rows; the block and small matrices."""
        vectors = self._found(extent)
        kept = min(self.kept, vectors)
        settings = self._solver_of(vectors)
        solver = planned_solver(self.solver, settings)
        matrices = 1 + solver.keeps_images
        steps = solver.multiplications(settings)
        width = max(this.width for this in self.schedule(extent))
        return Footprint(
            multiplications=rows * (steps + 3 * vectors**2 + vectors * kept),
            held=matrices * _NUMBER * rows * vectors,
            left=_NUMBER * rows * kept,
            state=_NUMBER * (2 * rows * width + 2 * vectors**2),
        )

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What the rest of an audit puts into numbers."""
        exchanged = self.columns(Extent())
        says = [
            f"Every organisation learns, of each of the {exchanged} vectors exchanged, the sum "
            "over the foreign neighbours of every own node, weighted by the operator.",
            "All learn the eigenvalues and totals of the graph: nodes, edges, and the power of "
            "two above the largest degree.",
        ]
        if self.start:
            says.append(
                "The start is an old basis. Its rows are known, so that the difference to what "
                "was exchanged for it tells, for every own node, what changed among its foreign "
                "neighbours; where nothing changed the vectors of both bases add up."
            )
        if self.exchange_rows:
            says.append(
                "For its nodes that came since, an organisation learns the sum of their foreign "
                "neighbours' rows of the old basis, and how many these are; the sum over one "
                "neighbour is that neighbour's row. Who joined learns the old eigenvalues."
            )
        return {
            "says": says,
            "columns": exchanged,
        }

    def results(self, root: Path, *, durable: bool) -> Bases:
        """Finished bases of a store."""
        return Bases(root / self.kept_as, durable=durable)

    def half(self, site: Site) -> KrylovHalf:
        """A member's half."""
        return KrylovHalf(self, site)


def krylov_of(spec: "OfflineSpec") -> Krylov:
    """The iteration that a phase runs, for those who study it."""
    if isinstance(spec.program, Krylov):
        return spec.program
    raise ConfigError(
        f"the program {spec.program.name} computes no spectral basis: try method = 'fedlap+'"
    )
