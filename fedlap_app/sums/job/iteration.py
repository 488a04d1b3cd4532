"""A member's part of the iteration: open the sums, go one step further, seal what it owes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral import totals as totals_of
from fedlap_app.spectral.operators import make_operator
from fedlap_app.spectral.solvers import Solver, make_solver
from fedlap_app.spectral.start import start_block
from fedlap_app.store.packing import Data
from fedlap_app.sums.backend import Sealed, SumBackend
from fedlap_app.sums.header import Place
from fedlap_app.sums.job.agreement import Agreement, Target
from fedlap_app.sums.job.columns import Columns
from fedlap_app.sums.job.handshake import pack_senders
from fedlap_app.sums.job.messages import Request
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.layout import as_rows
from fedlap_app.sums.transcript import Transcript

Array = NDArray[np.float64]
PHASE = "krylov"


class Sent(NamedTuple):
    """Shape of the last contribution: what its sums must look like.

    Attributes
    ----------
    step
        Where its pads were used.
    width
        Columns of the block product; -1: there was none.
    small
        Numbers of the small sum.
    vectors
        Vectors exchanged before.
    """

    step: int
    width: int
    small: int
    vectors: int


@dataclass
class Meter:
    """Seconds spent with sealing and with opening."""

    seal: float = 0.0
    open: float = 0.0

    @contextmanager
    def sealing(self) -> Iterator[None]:
        """Count the time inside."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seal += time.perf_counter() - started

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Count the time inside."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.open += time.perf_counter() - started

    def take(self) -> tuple[float, float]:
        """Both, to begin again from zero."""
        taken = self.seal, self.open
        self.seal = self.open = 0.0
        return taken


@dataclass(eq=False)
class Iteration:
    """The iteration of one member between two steps.

    Attributes
    ----------
    transcript
        Chain of the hashes of the small sums so far.
    sent
        The last contribution.
    columns
        Columns of all block products sent so far.
    numbers
        Numbers of all small sums sent so far.
    totals
        The summed totals of the graph (none before the first sums).
    solver
        The member's half of the solver (none before the first sums).
    stored
        Its columns of Q and Z.
    """

    subgraph: Subgraph
    spec: OfflineSpec
    agreement: Agreement
    backend: SumBackend
    transcript: Transcript
    sent: Sent
    columns: int = 0
    numbers: int = 0
    totals: Array = field(default_factory=lambda: np.zeros(0))
    solver: Solver | None = None
    stored: Columns | None = None
    meter: Meter = field(default_factory=Meter)

    @property
    def me(self) -> str:
        """Name of the member."""
        return self.agreement.keys.me

    @property
    def done(self) -> bool:
        """Whether only the small eigenproblem is left."""
        return self.solver is not None and self.solver.done

    def begin(self) -> Sealed:
        """Contribution to the totals of the graph."""
        numbers = totals_of.contribution(*self._rows)
        return self._seal(None, numbers, self.sent.step)

    def open(self, request: Request) -> tuple[Array | None, Array]:
        """Open the sums of the last contribution: received block and small numbers."""
        place, sent, backend = Place(PHASE, self.sent.step), self.sent, self.backend
        context = self.transcript.digest
        with self.meter.opening():
            header = backend.small_header(place, length=sent.small, vectors=sent.vectors)
            small = backend.open(bytes(request.common), header, context=context).numbers
            received = self._open_block(request.own, place, context)
        self.transcript = self.transcript.extend(request.common_hash)
        return received, small

    def _open_block(self, own: Data, place: Place, context: bytes) -> Array | None:
        width = self.sent.width
        expected = width >= 0 and bool(self.backend.senders(self.me))
        if expected != bool(len(own)):
            raise ProtocolError(
                f"A block sum of {len(own)} bytes came for {place} where "
                f"{'one' if expected else 'none'} was expected; it was dropped or misrouted."
            )
        if width < 0:
            return None
        layout = self.agreement.layout
        if not expected:
            return np.zeros((self.subgraph.num_nodes, width))
        length = layout.frame.length(width)
        header = self.backend.block_header(self.me, place, length=length, vectors=self.sent.vectors)
        return layout.read(self.backend.open(bytes(own), header, context=context).numbers, width)

    def prepare(self, sums: Array, secret: bytes, label: str, stored: Columns) -> None:
        """Make the solver, as soon as the totals of the graph are known."""
        totals = totals_of.Totals.from_sums(sums)
        rows, incoming = self._rows
        operator = make_operator(
            self.spec.operator,
            rows,
            totals,
            incoming=incoming,
            self_loops=self.spec.loops,
            regulariser=self.spec.shift,
        )
        block = min(self.spec.block, self.spec.vectors)
        start = start_block(secret, label, self.subgraph.num_nodes, block, totals.nodes)
        settings = self.spec.solver_settings(len(self.agreement.keys.members))
        self.totals = np.array(sums)
        self.solver = make_solver(self.spec.solver, operator, settings, start, stored.basis)
        self.stored = stored

    def restore(self, state: dict[str, NDArray[np.generic]], columns: Data) -> None:
        """Go on from a stored state and the columns that were stored with it."""
        if self.solver is not None and self.stored is not None:
            self.solver.restore(state)
            self.stored.load(self.solver.columns, columns)

    def save(self) -> list[Data]:
        """The newest columns, to be stored; others may go to a file of their own."""
        if self.solver is None or self.stored is None:
            return []
        return self.stored.save(self.solver.columns)

    def settle(self) -> dict[str, NDArray[np.generic]]:
        """The state as new arrays, to be stored; the iteration goes on from the same ones.

        So a process that goes on and one that was started anew work on arrays of one memory
        layout, and BLAS rounds alike.
        """
        if self.solver is None:
            return {}
        state = self.solver.state()
        self.solver.restore(state)
        return {**state, "totals": self.totals}

    def facts(self) -> dict[str, Any]:
        """What else is to be stored, as JSON holds it."""
        return {
            "transcript": self.transcript.digest.hex(),
            "sent": self.sent,
            "columns": self.columns,
            "numbers": self.numbers,
        }

    def contribute(self, step: int, allow: Callable[[int], None]) -> Sealed:
        """Seal this member's part of the next sums.

        Parameters
        ----------
        step
            Number of the step.
        allow
            Is asked before a product leaves, with the columns of all block products up to it.
        """
        if self.solver is None:
            raise ProtocolError("The totals of the graph are not known yet; start a new job.")
        mine = self.solver.contribute()
        if mine.block is not None:
            allow(self.columns + int(mine.block.shape[1]))
        return self._seal(mine.block, mine.small, step)

    @property
    def recipients(self) -> tuple[str, ...]:
        """The members to whose block sums this one contributes."""
        return tuple(self._targets)

    @property
    def lone_sender(self) -> bool:
        """Whether some recipient gets block products from this member alone."""
        return any(len(self.backend.senders(name)) == 1 for name in self._targets)

    def sent_values(self, width: int) -> int:
        """Numbers of a contribution to all block sums; none without a product."""
        return sum(target.frame.length(width) for target in self._targets.values()) * (width > 0)

    def received_values(self, width: int) -> int:
        """Numbers of the block sum for this member; none when it gets none."""
        expected = width > 0 and bool(self.backend.senders(self.me))
        return self.agreement.layout.frame.length(width) if expected else 0

    def _seal(self, block: Array | None, small: Array, step: int) -> Sealed:
        """Contributions for all (""), and to each other one if there is a block."""
        vectors = 0 if self.solver is None else self.solver.columns
        width = -1 if block is None else int(block.shape[1])
        lengths = {"": int(small.size)}
        for name, target in self._targets.items() if block is not None else ():
            lengths[name] = target.frame.length(width)
        sheet = self.backend.sheet(lengths, Place(PHASE, step), vectors)
        sheet.rooms[""][:] = small
        if block is not None:
            rows = as_rows(block)
            for name, target in self._targets.items():
                target.frame.place(rows.take(target.positions), target.slots, sheet.rooms[name])
        with self.meter.sealing():
            sealed = self.backend.seal_sheet(sheet, context=self.transcript.digest)
        self.sent = Sent(step, width, int(small.size), vectors)
        self.columns += max(width, 0)
        self.numbers += int(small.size)
        return sealed

    @cached_property
    def _targets(self) -> dict[str, Target]:
        """The members to whose block sums this one contributes."""
        targets = self.agreement.targets.items()
        return {name: each for name, each in targets if self.me in self.backend.senders(name)}

    @cached_property
    def _rows(self) -> tuple[Any, Any | None]:
        """Rows of the adjacency matrix, and of its transpose where direction counts."""
        out = self.subgraph.out_adjacency()
        if not self.subgraph.directed:
            return out, None
        into = self.subgraph.in_adjacency()
        if self.spec.operator == "directed":
            return out, into
        return out.maximum(into).tocsr(), None


def first_transcript(agreement: Agreement) -> Transcript:
    """Transcript before the first sum: members that were told different senders find out."""
    return Transcript.start(agreement.keys.job).extend(pack_senders(agreement.senders))
