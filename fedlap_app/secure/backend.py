"""One interface for sums that the adder cannot read.

A member seals a vector for a sum, the server adds the sealed contributions as they arrive without
any key, and whoever the sum is for opens it. Two kinds of sums differ only in their header: a
block sum is for one recipient and made by the other members, a small sum is for everyone and made
by everyone.
"""

import struct
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import shake_256
from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.secure.header import Header, Place, packed_part, require_equal
from fedlap_app.secure.kdf import derive
from fedlap_app.secure.keyring import KeyRing
from fedlap_app.secure.opened import Opened
from fedlap_app.secure.pads import PadLedger

Sealed = tuple[bytes, memoryview]


class InsecureWarning(UserWarning):
    """A setting gives protection away."""


@dataclass(frozen=True)
class StepWeights:
    """What the check weights of one step come from: all that contributors must agree on.

    Attributes
    ----------
    key
        Key of the weights of the values, which all sums of the step share.
    ones
        Weight of the 1 in the sum for each recipient, 64 bits.
    """

    key: bytes
    ones: Mapping[str, int]

    @classmethod
    def draw(cls, key: bytes, recipients: Sequence[str]) -> "StepWeights":
        """Expand the key of a step."""
        stream = shake_256(key).digest(32 + 8 * len(recipients))
        numbers = struct.unpack_from(f"<{len(recipients)}Q", stream, 32)
        return cls(stream[:32], dict(zip(recipients, numbers, strict=True)))


class SumBackend(ABC):
    """What one member does with sums: seal its contributions and open what is meant for it.

    Parameters
    ----------
    keys : KeyRing
        Keys of the member for this job.
    profile : str
        One of `profiles` (default: the first).
    senders : mapping of str to iterable of str, optional
        Who contributes to each recipient's block sums (default: all other members).
    ledger : PadLedger, optional
        Shared by the objects of one member in one process (default: a new one).
    """

    name: ClassVar[str]
    profiles: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        keys: KeyRing,
        *,
        profile: str = "",
        senders: Mapping[str, Iterable[str]] | None = None,
        ledger: PadLedger | None = None,
    ) -> None:
        self.keys = keys
        self.profile = profile or self.profiles[0]
        if self.profile not in self.profiles:
            raise ConfigError(
                f"The back end {self.name} has no profile {profile!r}; "
                f"choose one of {', '.join(self.profiles)}."
            )
        self._senders = {
            recipient: tuple(sorted(names)) for recipient, names in (senders or {}).items()
        }
        self._made: Header | None = None
        self._step: tuple[tuple[object, ...], StepWeights] | None = None
        self.ledger = ledger or PadLedger()
        if self.weakness:
            warnings.warn(self.weakness, InsecureWarning, stacklevel=2)

    @property
    def weakness(self) -> str:
        """One sentence for the start of a run when this protects less than one may think."""
        if len(self.keys.members) == 2:
            return (
                "With two members every sum has one foreign contribution: "
                "each learns the other's numbers exactly."
            )
        alone = sum(len(names) == 1 for names in self._senders.values())
        if alone:
            return (
                f"{alone} members get block sums from a single sender, whose numbers they learn "
                "exactly; hide the topology to avoid it."
            )
        return ""

    def senders(self, recipient: str) -> tuple[str, ...]:
        """Who contributes to a sum for this recipient; everyone when it is empty."""
        if not recipient:
            return self.keys.members
        if recipient not in self._senders:
            others = tuple(name for name in self.keys.members if name != recipient)
            self._senders[recipient] = others
        return self._senders[recipient]

    def key_id(self, recipient: str) -> str:
        """Public name of the key under which sums for this recipient are sealed."""
        return self.keys.key_id

    def block_header(
        self, recipient: str, place: Place, *, length: int, vectors: int = 0
    ) -> Header:
        """Header of the sum of all others' vectors for one recipient."""
        if recipient not in self.keys.members:
            raise ProtocolError(
                f"{recipient!r} is no member of this job; choose one of "
                f"{', '.join(self.keys.members)}."
            )
        return self._header(recipient, place, length, vectors)

    def small_header(self, place: Place, *, length: int, vectors: int = 0) -> Header:
        """Header of a sum of everyone's numbers for everyone."""
        return self._header("", place, length, vectors)

    def _header(self, recipient: str, place: Place, length: int, vectors: int) -> Header:
        self._made = Header(
            backend=self.name,
            profile=self.profile,
            job=self.keys.job,
            members=self.keys.members_hash,
            key_id=self.key_id(recipient),
            phase=place.phase,
            step=place.step,
            attempt=place.attempt,
            recipient=recipient,
            vectors=vectors,
            length=length,
            contributors=len(self.senders(recipient)),
        )
        return self._made

    def seal(self, values: ArrayLike, header: Header, *, context: bytes = b"") -> bytes:
        """Seal this member's contribution to the sum of a header, see `seal_parts`."""
        return b"".join(self.seal_parts(values, header, context=context))

    def seal_parts(self, values: ArrayLike, header: Header, *, context: bytes = b"") -> Sealed:
        """Header and body of this member's contribution to the sum of a header.

        Parameters
        ----------
        values : array_like
            `header.length` real numbers.
        header : Header
            From `block_header` or `small_header`.
        context : bytes
            What all contributors must agree on besides, such as the digest of a `Transcript`.
        """
        numbers = np.ascontiguousarray(values, dtype=np.float64).reshape(-1)
        if numbers.size != header.length:
            raise ProtocolError(
                f"{numbers.size} values came for a sum of {header.length}; fill up the layout."
            )
        if self.keys.me not in self.senders(header.recipient):
            raise ProtocolError(
                f"{self.keys.me!r} does not contribute to the sums of {header.recipient!r}; "
                "its own part stays local."
            )
        self._require_own(header)
        body = self._seal(numbers, header, context)
        return header.pack_for(self.keys.me), body.data.cast("B")

    def open(self, data: bytes, header: Header, *, context: bytes = b"") -> Opened:
        """Open the sum of a header and check it; anything else is refused with its reason."""
        if header.recipient not in ("", self.keys.me):
            raise ProtocolError(f"Only {header.recipient!r} opens its sums, not {self.keys.me!r}.")
        self._require_own(header)
        packed = header.pack()
        if packed_part(data) != packed:
            require_equal(Header.unpack(data)[0], header)
        return Opened(self._open(memoryview(data)[len(packed) :], header, context))

    def step_weights(self, header: Header, context: bytes) -> StepWeights:
        """What the check weights of a step come from; those of the last step are kept."""
        place = (header.phase, header.step, header.attempt, header.vectors, context)
        if self._step is None or self._step[0] != place:
            key = derive(self._weights_secret, "step", self.name, self.profile, *place)
            self._step = place, StepWeights.draw(key, ("", *self.keys.members))
        return self._step[1]

    @cached_property
    def _weights_secret(self) -> bytes:
        return self.keys.group_secret("check weights")

    def _require_own(self, header: Header) -> None:
        """Refuse a header that this member would not make for the same place."""
        if header is not self._made:
            same = self._header(header.recipient, header.place, header.length, header.vectors)
            require_equal(header, same)

    @abstractmethod
    def _seal(
        self, values: NDArray[np.float64], header: Header, context: bytes
    ) -> NDArray[np.generic]:
        """Body of a contribution."""

    @abstractmethod
    def _open(self, body: memoryview, header: Header, context: bytes) -> NDArray[np.float64]:
        """Values of a sum's body, checked."""


class Accumulator(ABC):
    """The server's side of one sum: adds contributions as they arrive, and needs no key.

    Parameters
    ----------
    header : Header
        Header of the sum.
    senders : iterable of str
        Who must contribute.
    """

    def __init__(self, header: Header, senders: Iterable[str]) -> None:
        self.header = header
        self.senders = tuple(sorted(senders))
        self._added: set[str] = set()
        if header.sender or len(self.senders) != header.contributors:
            raise ProtocolError(
                f"A sum of {header.contributors} contributions cannot be made by "
                f"{len(self.senders)} senders; every sender contributes once."
            )
        self._sender_of = {header.pack_for(name): name for name in self.senders}

    @property
    def missing(self) -> tuple[str, ...]:
        """Senders whose contribution has not come yet."""
        return tuple(name for name in self.senders if name not in self._added)

    def add(self, data: bytes | memoryview) -> str:
        """Add one contribution; one that does not belong here is refused and changes nothing.

        Gives the name of the sender that its header shows.
        """
        packed = packed_part(data)
        sender = self._sender_of.get(packed) or self._refuse(data)
        if sender in self._added:
            raise ProtocolError(
                f"{sender!r} has contributed to {self.header.place} already; a second "
                "contribution is never added."
            )
        self._absorb(sender, memoryview(data)[len(packed) :])
        self._added.add(sender)
        return sender

    def _refuse(self, data: bytes | memoryview) -> NoReturn:
        """Say what is wrong with the header of a contribution."""
        header, _ = Header.unpack(data)
        require_equal(header.of(""), self.header)
        raise ProtocolError(
            f"{header.sender!r} does not contribute to this sum; "
            f"expected are {', '.join(self.senders)}."
        )

    def result(self) -> bytes:
        """Sum of all contributions, with its header."""
        if self.missing:
            raise ProtocolError(
                f"The sum of {self.header.place} lacks {', '.join(self.missing)}; "
                "wait for all contributions."
            )
        return b"".join((self.header.pack(), self._body()))

    def _require_size(self, body: memoryview, size: int) -> None:
        """Refuse a body of another length."""
        if len(body) != size:
            raise ProtocolError(
                f"A contribution of {len(body)} bytes came for {self.header.place} where {size} "
                "were expected; it was cut or altered."
            )

    @abstractmethod
    def _absorb(self, sender: str, body: memoryview) -> None:
        """Check the body of a contribution and add it."""

    @abstractmethod
    def _body(self) -> bytes:
        """Body of the sum."""
