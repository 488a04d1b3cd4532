"""A member's rounds of sums: open what came, seal what its half of the program owes."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.privacy.consent import COUNTED_BY_JOB
from fedlap_app.store.packing import Data
from fedlap_app.sums.backend import Sealed, SumBackend
from fedlap_app.sums.header import Place
from fedlap_app.sums.job.agreement import Agreement, Target
from fedlap_app.sums.job.handshake import pack_senders
from fedlap_app.sums.job.messages import Request
from fedlap_app.sums.job.spec import OfflineSpec
from fedlap_app.sums.layout import as_rows
from fedlap_app.sums.program import Half
from fedlap_app.sums.transcript import Transcript

Array = NDArray[np.float64]


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
    """The rounds of one member between two steps.

    Attributes
    ----------
    half
        The member's half of the program.
    transcript
        Chain of the hashes of the small sums so far.
    sent
        The last contribution.
    columns
        Columns of all block products sent so far.
    numbers
        Numbers of all small sums sent so far.
    """

    half: Half
    spec: OfflineSpec
    agreement: Agreement
    backend: SumBackend
    transcript: Transcript
    sent: Sent
    columns: int = 0
    numbers: int = 0
    meter: Meter = field(default_factory=Meter)

    @property
    def me(self) -> str:
        """Name of the member."""
        return self.agreement.keys.me

    def open(self, request: Request) -> tuple[Array | None, Array]:
        """Open the sums of the last contribution: received block and small numbers."""
        sent, backend = self.sent, self.backend
        place = Place(self.spec.program.name, sent.step)
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
            return np.zeros((layout.slot_of.size, width))
        length = layout.frame.length(width)
        header = self.backend.block_header(self.me, place, length=length, vectors=self.sent.vectors)
        return layout.read(self.backend.open(bytes(own), header, context=context).numbers, width)

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
            Is asked before a product leaves, with the columns of all block products up to it, and
            before sums of a program that is counted by its jobs.
        """
        mine = self.half.contribute()
        if mine.block is not None:
            allow(self.columns + int(mine.block.shape[1]))
        elif self.spec.program.counted in COUNTED_BY_JOB:
            allow(1)
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
        vectors = self.half.exchanged
        width = -1 if block is None else int(block.shape[1])
        lengths = {"": int(small.size)}
        for name, target in self._targets.items() if block is not None else ():
            lengths[name] = target.frame.length(width)
        sheet = self.backend.sheet(lengths, Place(self.spec.program.name, step), vectors)
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


def first_transcript(agreement: Agreement) -> Transcript:
    """Transcript before the first sum: members that were told different senders find out."""
    return Transcript.start(agreement.keys.job).extend(pack_senders(agreement.senders))
