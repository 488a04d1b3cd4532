"""The server's side of sums: it adds what it cannot read, as it arrives, without any key."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.header import Header, Place, Sum, require_equal, require_same_sum


class Accumulator(ABC):
    """The server's side of all sums of one step: adds contributions as they arrive, without a key.

    Parameters
    ----------
    header : Header
        Header of a sum or of contributions to it; what comes must be of the same step.
    senders : callable
        Gives who contributes to the sum of a recipient ("": everyone's).
    """

    word: ClassVar[str]

    def __init__(self, header: Header, senders: Callable[[str], Sequence[str]]) -> None:
        self.step = header._replace(sender="", sums=())
        self._senders = senders
        self._lines: dict[str, Line] = {}
        for this in header.sums:
            self._line(this)

    def _line(self, this: Sum) -> "Line":
        """The running sum for a recipient; one that is not like the others say is refused."""
        line = self._lines.get(this.recipient)
        if line is None:
            names = tuple(sorted(self._senders(this.recipient)))
            if len(names) != this.contributors:
                raise ProtocolError(
                    f"A sum of {this.contributors} contributions cannot be made by "
                    f"{len(names)} senders; every sender contributes once."
                )
            line = Line(this, names)
            self._lines[this.recipient] = line
        if this != line.sum:
            require_same_sum(this, line.sum, self.step.place)
        return line

    def missing(self, recipient: str) -> tuple[str, ...]:
        """Senders whose contribution to a sum has not come yet."""
        line = self._lines.get(recipient)
        return () if line is None else line.missing

    def add(self, data: bytes | memoryview) -> str:
        """Add all that one member contributes; what does not belong here changes no sum.

        Gives the name of the sender that the header shows.
        """
        header, size = Header.unpack(data)
        require_equal(header._replace(sender="", sums=()), self.step)
        lines = [self._line(this) for this in header.sums]
        for line in lines:
            line.require_new(header.sender, self.step.place)
        if len(set(map(id, lines))) < len(lines):
            raise ProtocolError(f"{header.sender!r} lists a sum twice; every sum is listed once.")
        body = memoryview(data)[size:]
        sizes = [self._words(line.sum) for line in lines]
        expected = 8 * sum(sizes)
        if len(body) != expected:
            raise ProtocolError(
                f"Contributions of {len(body)} bytes came for {self.step.place} where {expected} "
                "were expected; they were cut or altered."
            )
        # Room is made for what has come only, never for what a header says.
        for line in lines:
            line.make_room(self._room)
        words, at, parts = np.frombuffer(body, dtype=self.word), 0, []
        for size in sizes:
            parts.append(words[at : at + size])
            at += size
        for line, part in zip(lines, self._read(lines, parts), strict=True):
            self._absorb(line, header.sender, part)
            line.added.add(header.sender)
        return header.sender

    def result(self, recipient: str) -> bytes:
        """Sum of all contributions for a recipient, with its header; empty: nobody contributes."""
        line = self._lines.get(recipient)
        if line is None:
            return b""
        if line.missing:
            raise ProtocolError(
                f"The sum of {self.step.place} lacks {', '.join(line.missing)}; "
                "wait for all contributions."
            )
        header = self.step._replace(sums=(line.sum,))
        return b"".join((header.pack(), self._sum_body(line)))

    def _room(self, this: Sum) -> NDArray[Any]:
        """Room for the running sum."""
        return np.zeros(this.length + SLOTS, dtype=self.word)

    def _words(self, this: Sum) -> int:
        """Words of 8 bytes of one contribution."""
        return this.length + SLOTS

    def _read(
        self, lines: "Sequence[Line]", parts: Sequence[NDArray[Any]]
    ) -> Sequence[NDArray[Any]]:
        """What is added to each sum; it is refused here, before any of them has changed."""
        return parts

    def _sum_body(self, line: "Line") -> bytes | memoryview:
        """Body of the sum."""
        return line.total.data.cast("B")

    @abstractmethod
    def _absorb(self, line: "Line", sender: str, words: NDArray[Any]) -> None:
        """Add the contribution of one sender to one sum."""


@dataclass(eq=False)
class Line:
    """One running sum.

    Attributes
    ----------
    sum
        What it is.
    senders
        Who contributes, sorted.
    total
        The sum of what was added, check slots included.
    added
        Who has contributed.
    taken
        How many were added in the order of names, where it counts.
    """

    sum: Sum
    senders: tuple[str, ...]
    total: NDArray[Any] = field(default_factory=lambda: np.empty(0))
    added: set[str] = field(default_factory=set)
    taken: int = 0

    def make_room(self, room: Callable[[Sum], NDArray[Any]]) -> None:
        """Make room for the sum, before the first contribution to it."""
        if not self.total.size:
            self.total = room(self.sum)

    @property
    def missing(self) -> tuple[str, ...]:
        """Senders whose contribution has not come yet."""
        return tuple(name for name in self.senders if name not in self.added)

    def require_new(self, sender: str, place: Place) -> None:
        """Refuse a stranger, and a second contribution."""
        if sender not in self.senders:
            raise ProtocolError(
                f"{sender!r} does not contribute to this sum; "
                f"expected are {', '.join(self.senders)}."
            )
        if sender in self.added:
            raise ProtocolError(
                f"{sender!r} has contributed to {place} already; a second contribution is never "
                "added."
            )
