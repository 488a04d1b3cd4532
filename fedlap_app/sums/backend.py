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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.facts import Facts
from fedlap_app.sums.header import Header, Place, Sum, packed_part, require_equal
from fedlap_app.sums.kdf import encode
from fedlap_app.sums.keyring import KeyRing
from fedlap_app.sums.opened import Opened
from fedlap_app.sums.pads import PadLedger

Sealed = tuple[bytes, memoryview]
Floats = NDArray[np.float64]


TWO_MEMBERS = (
    "With two members every sum has one foreign contribution: "
    "each learns the other's numbers exactly."
)


MOST_NUMBERS = 2**27
"""Real numbers that a member contributes to all sums of a step together: 1 GiB of them."""


class InsecureWarning(UserWarning):
    """A setting gives protection away."""


@dataclass(frozen=True)
class StepWeights:
    """What the check weights of one step come from: all that contributors must agree on.

    Attributes
    ----------
    key
        Key of the weights of the values, which all sums of the step share; it marks the pads of
        the step as well.
    ones
        Weight of the 1 in the sum for each recipient, 64 bits.
    """

    key: bytes
    ones: Mapping[str, int]

    @classmethod
    def draw(cls, about: bytes, recipients: Sequence[str]) -> "StepWeights":
        """Expand what says all about a step, a secret of at least 32 bytes included."""
        stream = shake_256(about).digest(32 + 8 * len(recipients))
        numbers = struct.unpack_from(f"<{len(recipients)}Q", stream, 32)
        return cls(stream[:32], dict(zip(recipients, numbers, strict=True)))


class Sheet:
    """Room for all contributions of one member in one step, side by side; zeros at first.

    Parameters
    ----------
    header : Header
        Their header, without a sender.

    Attributes
    ----------
    rooms
        Where the real numbers for each recipient go.
    parts
        The same with the check slots behind them.
    body
        All of it.
    """

    def __init__(self, header: Header) -> None:
        self.header = header
        self.body = np.zeros(sum(this.length + SLOTS for this in header.sums))
        self.parts: dict[str, Floats] = {}
        at = 0
        for this in header.sums:
            end = at + this.length + SLOTS
            self.parts[this.recipient] = self.body[at:end]
            at = end
        self.rooms = {name: part[:-SLOTS] for name, part in self.parts.items()}


class SumBackend(Facts, ABC):
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
            return TWO_MEMBERS
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

    def block_key(self, sender: str, recipient: str) -> str:
        """Public name of the key that a block product of this member, or for it, is under."""
        return self.keys.sum_key_ids[recipient]

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
        self._made = self._step_header({recipient: length}, place, vectors)
        return self._made

    def _step_header(self, lengths: Mapping[str, int], place: Place, vectors: int) -> Header:
        """Header of all sums of a step that this member has to do with."""
        sums = tuple(
            Sum(recipient, length, len(self.senders(recipient)))
            for recipient, length in lengths.items()
        )
        keys = self.keys
        about = (self.name, self.profile, keys.job, keys.members_hash, keys.key_id)
        return Header(*about, *place, vectors, sums)

    def seal(self, values: ArrayLike, header: Header, *, context: bytes = b"") -> bytes:
        """Seal this member's contribution to one sum; see `sheet` for those of a whole step.

        Parameters
        ----------
        values : array_like
            `header.length` real numbers.
        header : Header
            From `block_header` or `small_header`.
        context : bytes
            What all contributors must agree on besides, such as the digest of a `Transcript`.
        """
        numbers = np.asarray(values, dtype=np.float64).reshape(-1)
        if numbers.size != header.length:
            raise ProtocolError(
                f"{numbers.size} values came for a sum of {header.length}; fill up the layout."
            )
        self._require_own(header)
        sheet = self.sheet({header.recipient: numbers.size}, header.place, header.vectors)
        sheet.rooms[header.recipient][:] = numbers
        return b"".join(self.seal_sheet(sheet, context=context))

    def sheet(self, lengths: Mapping[str, int], place: Place, vectors: int = 0) -> Sheet:
        """Room for all contributions of this member in one step.

        Parameters
        ----------
        lengths : mapping of str to int
            How many real numbers go to the sum of each recipient; "" is everyone's.
        place : Place
            Where in the protocol the step is.
        vectors : int
            Vectors exchanged before it.
        """
        for recipient in lengths:
            if self.keys.me not in self.senders(recipient):
                raise ProtocolError(
                    f"{self.keys.me!r} does not contribute to the sums of {recipient!r}; "
                    "its own part stays local."
                )
        # The lengths follow from layouts that others have made.
        if (count := sum(lengths.values())) > MOST_NUMBERS:
            raise ProtocolError(
                f"A step asks for {count} numbers of {self.keys.me!r} where {MOST_NUMBERS} are the "
                "most; set a smaller block, or ask who claims so many rows."
            )
        return Sheet(self._step_header(lengths, place, vectors))

    def seal_sheet(self, sheet: Sheet, *, context: bytes = b"") -> Sealed:
        """Header and body of all contributions on a sheet, which is used up.

        Parameters
        ----------
        sheet : Sheet
            With the numbers in its rooms.
        context : bytes
            What all contributors must agree on besides, such as the digest of a `Transcript`.
        """
        body = self._body(sheet, self.step_weights(sheet.header, context))
        return sheet.header.of(self.keys.me).pack(), body

    def open(self, data: bytes, header: Header, *, context: bytes = b"") -> Opened:
        """Open the sum of a header and check it; anything else is refused with its reason."""
        if header.recipient not in ("", self.keys.me):
            raise ProtocolError(f"Only {header.recipient!r} opens its sums, not {self.keys.me!r}.")
        self._require_own(header)
        packed = header.pack()
        if packed_part(data) != packed:
            require_equal(Header.unpack(data)[0], header)
        body = memoryview(data)[len(packed) :]
        expected = self.body_bytes(self.profile, header.sums[0], summed=True)
        if len(body) != expected:
            raise ProtocolError(
                f"A sum of {len(body)} bytes came where {expected} were expected; "
                "it was cut or altered."
            )
        weights = self.step_weights(header, context)
        return Opened(self._open(body, header.sums[0], header.place, weights))

    def step_weights(self, header: Header, context: bytes) -> StepWeights:
        """What the check weights of a step come from; those of the last step are kept."""
        place = (header.phase, header.step, header.attempt, header.vectors, context)
        if self._step is None or self._step[0] != place:
            about = encode(self._weights_secret, self.name, self.profile, *place)
            self._step = place, StepWeights.draw(about, ("", *self.keys.members))
        return self._step[1]

    @cached_property
    def _weights_secret(self) -> bytes:
        return self.keys.group_secret("check weights")

    def _require_own(self, header: Header) -> None:
        """Refuse a header that this member would not make for the same place."""
        if header is not self._made:
            same = self._header(header.recipient, header.place, header.length, header.vectors)
            require_equal(header, same)

    def _body(self, sheet: Sheet, weights: StepWeights) -> memoryview:
        """Body of all contributions on a sheet."""
        for this in sheet.header.sums:
            self._seal(sheet.parts[this.recipient], this, sheet.header.place, weights)
        return sheet.body.data.cast("B")

    def _seal(self, part: Floats, this: Sum, place: Place, weights: StepWeights) -> None:
        """Seal in place the numbers of one contribution, and fill the check slots behind them."""
        raise TypeError(f"{type(self).__name__} seals sheets as a whole")

    @abstractmethod
    def _open(self, body: memoryview, this: Sum, place: Place, weights: StepWeights) -> Floats:
        """Values of a sum's body, checked."""
