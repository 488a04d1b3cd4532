"""The program `walks`: each organisation's rows of (D^-1 (A + I))^steps, pruned after every step.

Row v of a step is the mean of the rows of v and its neighbours before it. So organisations hand
rows over as they hand over features in neighbour sums, with a column for every node of the graph,
and each keeps the largest entries of what it has summed. First all learn how many nodes everyone
has, from which follows whose columns stand where.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, DataError, ProtocolError
from fedlap_app.graphs.reach import largest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.consent import WALKS
from fedlap_app.spectral import totals
from fedlap_app.spectral.neighbourhood import unheard
from fedlap_app.spectral.solvers import Contribution, Round
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts, Results
from fedlap_app.sums.kdf import derive
from fedlap_app.sums.program import Array, Extent, Footprint, Program, Site, State
from fedlap_app.sums.programs.hops_half import HopsHalf

MOST_NODES = 3000
"""Dense rows of more nodes are not worth their bytes; of PubMed they would be 28 GB each."""
MEMBERS = 1024
"""Places for the numbers of nodes that members hold."""
_SCALE = 2.0**12
_NUMBER = 8
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FoundWalks:
    """What one organisation has at the end.

    Attributes
    ----------
    weights
        (n, nodes of all) in the order of its nodes; columns as all count them.
    facts
        What it belongs to.
    """

    weights: sp.csr_array
    facts: Facts


class WalkResults(Results[FoundWalks]):
    """The finished walks of one store."""

    kind = "weights of walks"

    def _pack(self, result: FoundWalks) -> tuple[Facts, list[Data]]:
        rows = result.weights
        shape = np.array(rows.shape, "<i8")
        parts = (shape, rows.indptr.astype("<i8"), rows.indices.astype("<i8"), rows.data)
        return result.facts, [each.tobytes() for each in parts]

    def _unpack(self, facts: Facts, parts: list[memoryview]) -> FoundWalks:
        shape, starts, columns = (np.frombuffer(each, "<i8") for each in parts[:3])
        size = int(shape[0]), int(shape[1])
        values = np.frombuffer(parts[3], "<f8")
        return FoundWalks(sp.csr_array((values, columns, starts), shape=size), facts)


@dataclass(frozen=True, eq=False)
class WalkStep:
    """One organisation's part of a step of the random walk with loops."""

    subgraph: Subgraph
    kept: int

    def columns(self, features: int, hop: int) -> int:
        """The same in every step."""
        del hop
        return features

    @cached_property
    def _owing(self) -> sp.csr_array:
        """(m, n) weights of the edges from own nodes to external ones."""
        return sp.csr_array(self.subgraph.out_adjacency()[:, self.subgraph.num_nodes :].T)

    @cached_property
    def _own(self) -> sp.csr_array:
        n = self.subgraph.num_nodes
        return sp.csr_array(self.subgraph.in_adjacency()[:, :n] + sp.eye_array(n))

    @cached_property
    def _degrees(self) -> Array:
        """(n, 1) weights of all edges to a node, its loop among them."""
        found = np.asarray(self.subgraph.in_adjacency().sum(axis=1), dtype=np.float64)
        return found.reshape(-1, 1) + 1.0

    def owed(self, X: Array, hop: int) -> Array:
        """Sums of own rows for the owners of the external nodes."""
        del hop
        return np.asarray(self._owing @ X)

    def marks(self) -> Array:
        """No step has another column."""
        raise ProtocolError("Walks have no column of marks.")

    def combine(self, X: Array, received: Array) -> Array:
        """The own rows after the step; what sums carry of noise is no weight."""
        found = (self._own @ X + received) / self._degrees
        pruned: Array = largest(sp.csr_array(found), self.kept).toarray()
        return pruned


class WalkHalf(HopsHalf):
    """One member's half: first the numbers of nodes, then the steps."""

    program: "Walks"

    def __init__(self, program: "Walks", site: Site) -> None:
        super().__init__(program, site)
        self.counts: Array | None = None
        if site.members > MEMBERS:
            raise ConfigError(
                f"walks take at most {MEMBERS} organisations, and there are {site.members}"
            )
        _require_small(site.subgraph.num_nodes)

    @property
    def small_kind(self) -> str:
        """What the small numbers are."""
        return "numbers of nodes" if self.counts is None else super().small_kind

    def contribute(self) -> Contribution:
        """The own number of nodes in the own place, then as in every hop."""
        if self.counts is not None:
            return super().contribute()
        table = np.zeros(MEMBERS)
        table[self._place] = self.site.subgraph.num_nodes / _SCALE
        return Contribution(None, table)

    def absorb(self, received: Array | None, small: Array) -> None:
        """Take in the numbers of nodes, or the sums of a hop."""
        if self.counts is not None:
            super().absorb(received, small)
            return
        if small.shape != (MEMBERS,) or not np.isfinite(small).all():
            raise ProtocolError(
                f"{small.size} numbers of nodes arrived where {MEMBERS} were expected: the members "
                "are not in the same round."
            )
        self._start(np.rint(small[: self.site.members] * _SCALE))

    def _start(self, counts: Array) -> None:
        """Begin with walks of no step: every node is at itself."""
        size = self.site.subgraph.num_nodes
        if (counts < 0).any() or counts[self._place] != size:
            raise ProtocolError(
                f"The numbers of nodes say that {int(counts[self._place])} are here, and there are "
                f"{size}: the sum was altered."
            )
        _require_small(int(counts.sum()))
        start = int(counts[: self._place].sum())
        rows = np.zeros((size, int(counts.sum())))
        rows[np.arange(size), start + self._order(size)] = 1.0
        self.counts = counts
        self.begin(WalkStep(self.site.subgraph, self.program.kept), rows)

    def _order(self, size: int) -> Ints:
        """Columns of the own nodes; where data are real, a secret order, since ids are in one."""
        if self.site.secrets.simulated:
            return np.arange(size)
        secret = derive(self.site.secrets.organisation, "columns of walks", self.site.job)
        return np.random.default_rng(int.from_bytes(secret, "big")).permutation(size)

    @property
    def _place(self) -> int:
        return sorted(self.site.agreement.keys.members).index(self.site.agreement.keys.me)

    def settle(self) -> State:
        """Where it is, and the numbers of nodes."""
        if self.counts is None:
            return {}
        return {**super().settle(), "counts": self.counts}

    def restore(self, state: State, stored: Data) -> None:
        """Begin again with the same numbers, and go through the hops with what came."""
        if state:
            self._start(np.asarray(state["counts"], dtype=np.float64))
            super().restore(state, stored)

    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> FoundWalks:
        """The own rows."""
        if not self.done:
            raise ProtocolError("The walks are not finished; the message came too early.")
        return FoundWalks(sp.csr_array(self.rows), facts)


def _require_small(nodes: int) -> None:
    if nodes > MOST_NODES:
        raise DataError(
            f"sealed walks exchange a column for every node, and the graph has {nodes} or more; "
            f"above {MOST_NODES} set read-walks = true, which reads the same weights off the whole "
            "graph in a simulation (`fedlap plan --method fedstruct` says what sealed ones take)"
        )


@dataclass(frozen=True)
class Walks(Program):
    """Settings of the walks.

    Attributes
    ----------
    steps, kept
        Their length, and the entries that a row keeps; 0: all.
    block
        Columns of a block.
    """

    steps: int = 10
    kept: int = 30
    block: int = 256

    name: ClassVar[str] = "walks"
    kept_as: ClassVar[str] = "walks"
    counted: ClassVar[str] = WALKS
    blocks: ClassVar[str] = "rows of walks"
    block_sums: ClassVar[str] = "sums of neighbours' rows of walks"

    @classmethod
    def from_settings(cls, settings: Any) -> "Walks":  # noqa: ANN401 - a room above
        """What the settings of a run say."""
        return cls(steps=settings.walk_steps, kept=settings.walk_entries)

    def agreed(self) -> dict[str, Any]:
        """All settings."""
        return {"program": self.name, **asdict(self)}

    @property
    def hops(self) -> int:
        """A hop for every step."""
        return self.steps

    @property
    def width(self) -> int:
        """Columns of a block."""
        return self.block

    @property
    def products(self) -> int:
        """Columns that each node takes."""
        return self.steps

    def schedule(self, extent: Extent) -> Iterator[Round]:
        """Numbers of nodes; for every step marks, then a column for every node in blocks."""
        nodes = max(extent.nodes, 1)  # nobody knows how many before the first sum
        yield Round(0, MEMBERS)
        for _ in range(self.steps):
            yield Round(0, totals.OCTAVES)
            for start in range(0, nodes, self.block):
                yield Round(min(self.block, nodes - start), 0)

    def describe(self, extent: Extent) -> str:
        """Columns and steps."""
        entries = f"the {self.kept} largest" if self.kept else "all"
        return (
            f"rows of walks over {extent.nodes} nodes in blocks of {self.block} columns, "
            f"{self.steps} steps, {entries} entries of a row kept"
        )

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """The rows, what came and their sums; the entries that are kept; where the job is."""
        kept = min(self.kept or extent.nodes, extent.nodes)
        return Footprint(
            held=3 * _NUMBER * rows * extent.nodes,
            left=2 * _NUMBER * rows * kept,
            state=_NUMBER * (3 + MEMBERS),
        )

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What organisations learn of each other's edges."""
        boundary = sum(int(np.unique(part.inter_edges[0][0]).size) for part in parts)
        single = sum(int(unheard(part, 2).sum()) for part in parts)
        says = [
            "All learn how many nodes every organisation has. Every organisation learns, for each "
            "own node and step, the sum of its foreign neighbours' rows of walks: to which nodes "
            "these have walks, as positions that stand for nodes of a named organisation.",
            f"{single} nodes have one foreign neighbour and get its row itself: from the second "
            "step on this lists the neighbour's own neighbours, foreign edges included. No guard "
            "leaves such rows out, as the weights would be others then.",
            "Edges between foreign nodes within as many steps can be read off; features and "
            "labels are in no row. The server adds sums that it cannot read.",
        ]
        return {"says": says, "single": single, "boundary": boundary}

    def results(self, root: Path, *, durable: bool) -> WalkResults:
        """Finished walks of a store."""
        return WalkResults(root / self.kept_as, durable=durable)

    def half(self, site: Site) -> WalkHalf:
        """A member's half."""
        return WalkHalf(self, site)
