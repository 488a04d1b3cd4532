"""What travels before training: numbered requests, and the replies to a hello."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data, pack, text, unpack
from fedlap_app.sums.kdf import digest

HELLO = "hello"
REUSE = "reuse"
CARDS = "cards"
PAIRS = "pairs"
COMPARE = "compare"
SUMS = "sums"
SHARE = "share"

# The first part of a reply says what it is.
CONTRIBUTION = b"contribution"
MISMATCH = b"mismatch"
SOLUTION = b"solution"
WAITING = b"waiting"
DONE = b"done"
ROWS = b"rows"

_HELLO_BYTES = 64
# Where in a job a request can come; the sums follow, and the solution after them.
_STEPS = {HELLO: (0, 0), REUSE: (0, 0), CARDS: (0, 0), PAIRS: (1, 1), COMPARE: (2, 2)}
_LATER = (2, 10**8 - 1)
_KINDS = (*_STEPS, SUMS, SHARE)


@dataclass(frozen=True)
class Request:
    """What the server asks one member.

    Attributes
    ----------
    kind
        One of the kinds above.
    job, step
        Place in the protocol; a hello belongs to no job.
    common, own
        What is the same for all members, and what is for this one.
    """

    kind: str
    job: str
    step: int
    common: Data = b""
    own: Data = b""

    def require_possible(self) -> "Request":
        """The request, unless there is no such kind or it cannot come at this step."""
        if self.kind not in _KINDS:
            raise ProtocolError(
                f"A message asks for {self.kind[:20]!r}, which the offline phase has not; let all "
                "parties run one release."
            )
        first, last = _STEPS.get(self.kind, _LATER)
        if not first <= self.step <= last:
            raise ProtocolError(
                f"A message asks for {self.kind!r} at step {self.step} where step {first} was "
                "expected; it was altered."
            )
        if bool(self.job) == (self.kind == HELLO):
            raise ProtocolError(
                f"A message asks for {self.kind!r} of job {self.job or '(none)'}; it was altered."
            )
        if self.kind == HELLO and len(self.common) > _HELLO_BYTES:
            raise ProtocolError(
                f"A hello has {len(self.common)} bytes where {_HELLO_BYTES} are the most; it was "
                "altered."
            )
        return self

    def digest(self) -> bytes:
        """Hash by which a repeated request is told from an altered one."""
        own = hashlib.sha256(self.own).digest()
        return digest("request", self.kind, self.job, self.step, self.common_hash, own)

    @cached_property
    def common_hash(self) -> bytes:
        """Hash of what is the same for all members."""
        return hashlib.sha256(self.common).digest()


@dataclass(frozen=True)
class HelloReply:
    """A member's card, the jobs it has finished or open, and whether it is simulated.

    Jobs are pairs of a job id and the hash of its members; only those of the same settings and
    the same data are listed.
    """

    card: bytes
    finished: tuple[tuple[str, str], ...]
    open: tuple[tuple[str, str], ...]
    simulated: bool

    def pack(self) -> bytes:
        """As bytes."""
        jobs = (pack(*(part.encode() for pair in pairs for part in pair)) for pairs in self._jobs)
        return pack(self.card, *jobs, bytes([self.simulated]))

    @property
    def _jobs(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        return self.finished, self.open

    @classmethod
    def unpack(cls, data: Data) -> "HelloReply":
        """Read what `pack` wrote."""
        card, finished, opened, simulated = unpack(data, 4)
        lists = []
        for part in (finished, opened):
            names = [text(each) for each in unpack(part)]
            lists.append(tuple(zip(names[::2], names[1::2], strict=False)))
        reply = cls(bytes(card), lists[0], lists[1], bytes(simulated) == b"\1")
        if reply.pack() != data:
            raise ProtocolError(
                f"A reply of {len(data)} bytes to a hello lists jobs without members, or says "
                "neither yes nor no; it was altered."
            )
        return reply


def parts_after_hello(common: Data) -> list[bytes]:
    """The hello that a message belongs to, and the cards after it."""
    parts = list(map(bytes, unpack(common)))
    if not parts:
        raise ProtocolError("A message of cards names no hello; it was altered, start again.")
    return parts
