"""The versioned header of every contribution and every sum.

One header stands before all that a member contributes in one step, and lists the sums that it
contributes to; the sum that the server hands out has a header with that one sum and no sender.

The server reads headers: it has to route contributions, add only what belongs together and refuse
the rest. So a header is in the clear, and a server could alter it. No signature over it is needed,
because no client ever acts upon a header that came from outside:

- A client knows where it is in the protocol and builds the header that it expects by itself; a sum
  that carries any other header is refused, and the reason names the first field that differs.
- A contribution's header is bound to its content. Pads and the weights of the check slots depend
  on job, members, phase, step, attempt and recipient, and these weights on the other fields, too;
  the length and the number of contributors are those of the content. If the server makes two
  clients work under different headers, their pads do not cancel or their weights differ, and the
  recipient refuses the sum.

The bytes are canonical: a header has exactly one packed form, filled up to a multiple of 8 so that
the numbers after it are aligned.
"""

import struct
from functools import lru_cache
from typing import NamedTuple

from fedlap_app.errors import ProtocolError

VERSION = 2
_MAGIC = b"FLS"
_START = struct.Struct("<3sBIIHIH")
_HASHES = struct.Struct("<16s16s8s")
_SUM = struct.Struct("<HQ")
_SIZE = slice(4, 8)
_LONGEST = 1 << 20  # thousands of sums
_STRINGS = ("backend", "profile", "phase", "sender")
_LIMITS = {"step": 32, "attempt": 16, "vectors": 32, "contributors": 16, "length": 48}
_HASH_BYTES = {"job": 16, "members": 16, "key_id": 8}
_DIGITS = frozenset("0123456789abcdef")


class Place(NamedTuple):
    """A place in the protocol; whatever is used once is used once a place."""

    phase: str
    step: int = 0
    attempt: int = 0

    def __str__(self) -> str:
        """Form for error messages."""
        return f"{self.phase} step {self.step} attempt {self.attempt}"


class Sum(NamedTuple):
    """One sum of a step.

    Attributes
    ----------
    recipient
        Who can open it; empty: every member.
    length
        Numbers, check slots not counted.
    contributors
        Contributions that make it.
    """

    recipient: str
    length: int
    contributors: int


class _Fields(NamedTuple):
    backend: str
    profile: str
    job: str
    members: str
    key_id: str
    phase: str
    step: int
    attempt: int
    vectors: int
    sums: tuple[Sum, ...]
    sender: str = ""
    version: int = VERSION


class Header(_Fields):
    """What contributions (with a sender) or a sum (without) say about themselves.

    Parameters
    ----------
    backend, profile : str
        How the numbers are sealed.
    job, members, key_id : str
        Job id, member-list hash and key id, in hexadecimal.
    phase, step, attempt : str, int, int
        Place in the protocol.
    vectors : int
        Vectors exchanged before this step.
    sums : tuple of Sum
        What is contributed to, or the one sum that it is.
    sender : str
        Whose contributions these are; empty: it is a sum.
    """

    __slots__ = ()

    @property
    def place(self) -> Place:
        """Place in the protocol."""
        return Place(self.phase, self.step, self.attempt)

    @property
    def recipient(self) -> str:
        """Who can open the first sum."""
        return self.sums[0].recipient

    @property
    def length(self) -> int:
        """Numbers of the first sum."""
        return self.sums[0].length

    @property
    def contributors(self) -> int:
        """Contributions that make the first sum."""
        return self.sums[0].contributors

    def of(self, sender: str) -> "Header":
        """The same header for one sender's contributions; for the sum when empty."""
        return self._replace(sender=sender)

    def pack(self) -> bytes:
        """Canonical bytes; what cannot be packed is refused."""
        content = (
            _hashes(self.job, self.members, self.key_id),
            _string("backend", self.backend),
            _string("profile", self.profile),
            _string("phase", self.phase),
            _string("sender", self.sender),
            _pack_sums(self.sums),
        )
        length = _START.size + sum(map(len, content))
        size = -(-length // 8) * 8
        numbers = (self.step, self.attempt, self.vectors)
        try:
            start = _START.pack(_MAGIC, self.version, size, *numbers, len(self.sums))
        except struct.error:
            _refuse_number(step=self.step, attempt=self.attempt, vectors=self.vectors)
            raise
        return b"".join((start, *content, bytes(size - length)))

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> tuple["Header", int]:
        """Read the header that some bytes begin with; gives it and its size."""
        packed = packed_part(data)
        try:
            magic, version, _, step, attempt, vectors, count = _START.unpack_from(packed)
            if magic != _MAGIC:
                raise ValueError
            _check_version(version)
            at = _START.size + _HASHES.size
            hashes = (part.hex() for part in _HASHES.unpack_from(packed, _START.size))
            job, members, key_id = hashes
            strings = []
            for _ in _STRINGS:
                strings.append(packed[at + 1 : at + 1 + packed[at]].decode())
                at += 1 + packed[at]
            backend, profile, phase, sender = strings
            sums = _read_sums(packed[at:], count)
            place = (phase, step, attempt, vectors)
            header = cls(backend, profile, job, members, key_id, *place, sums, sender)
            if header.pack() != packed:
                raise ValueError
        except (struct.error, ValueError, IndexError) as error:
            raise ProtocolError(
                f"A message of {len(data)} bytes does not begin with a header; "
                "it was altered or is no contribution."
            ) from error
        return header, len(packed)


def packed_part(data: bytes | memoryview) -> bytes:
    """The bytes that stand where a header does, whatever they are."""
    size = int.from_bytes(data[_SIZE], "little")
    return bytes(data[: min(size, _LONGEST)])


@lru_cache(maxsize=64)
def _hashes(job: str, members: str, key_id: str) -> bytes:
    """Hashes one after the other."""
    for (name, size), text in zip(_HASH_BYTES.items(), (job, members, key_id), strict=True):
        if len(text) != 2 * size or not _DIGITS.issuperset(text):
            raise ProtocolError(
                f"The header field {name} is {text!r}; it must be {size} bytes in hexadecimal."
            )
    return bytes.fromhex(job + members + key_id)


@lru_cache(maxsize=4096)
def _string(name: str, text: str) -> bytes:
    """A string behind its length."""
    content = text.encode()
    if len(content) > 255:
        raise ProtocolError(f"The header field {name} is longer than 255 bytes; shorten it.")
    return bytes((len(content),)) + content


@lru_cache(maxsize=256)
def _pack_sums(sums: tuple[Sum, ...]) -> bytes:
    """The list of sums; it is the same in many steps."""
    for each in sums:
        _refuse_number(contributors=each.contributors, length=each.length)
    return b"".join(
        _string("recipient", each.recipient) + _SUM.pack(each.contributors, each.length)
        for each in sums
    )


@lru_cache(maxsize=256)
def _read_sums(data: bytes, count: int) -> tuple[Sum, ...]:
    """Read what `_pack_sums` wrote."""
    sums, at = [], 0
    for _ in range(count):
        end = at + 1 + data[at]
        contributors, length = _SUM.unpack_from(data, end)
        sums.append(Sum(data[at + 1 : end].decode(), length, contributors))
        at = end + _SUM.size
    return tuple(sums)


def _refuse_number(**numbers: int) -> None:
    """Refuse a number that does not fit, by its name."""
    for name, value in numbers.items():
        if not 0 <= value < 1 << _LIMITS[name]:
            raise ProtocolError(
                f"The header field {name} is {value}; it must fit {_LIMITS[name]} bits."
            )


def _check_version(version: int) -> None:
    """Refuse a format of another version by name."""
    if version != VERSION:
        raise ProtocolError(
            f"A message has format version {version}, but this is version {VERSION}; "
            "let all parties run one release."
        )


def require_equal(found: Header, expected: Header) -> None:
    """Refuse a header that differs from the expected one, naming the first difference."""
    if found == expected:
        return
    for name, got, want in zip(Header._fields, found, expected, strict=True):
        if name == "sums" and len(found.sums) == len(expected.sums):
            for one, other in zip(found.sums, expected.sums, strict=True):
                require_same_sum(one, other, expected.place)
        elif got != want:
            raise _difference(expected.place, name, got, want)


def require_same_sum(found: Sum, expected: Sum, place: Place) -> None:
    """Refuse a sum that differs from the expected one, naming the first difference."""
    for name, got, want in zip(Sum._fields, found, expected, strict=True):
        if got != want:
            raise _difference(place, name, got, want)


def _difference(place: Place, name: str, got: object, want: object) -> ProtocolError:
    return ProtocolError(
        f"A message for {place} says {name} = {got!r} where {want!r} was expected; "
        "it is stale, misrouted or altered."
    )
