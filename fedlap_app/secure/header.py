"""The versioned header of every contribution and every sum.

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
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from fedlap_app.errors import ProtocolError

VERSION = 1
_MAGIC = b"FLS"
_START = struct.Struct("<3sBH")
_NUMBERS = struct.Struct("<HIHIQ")
_FIXED = struct.Struct("<3sBHHIHIQ16s16s8s")
_SIZE_AT = 4
_LONGEST = _FIXED.size + 5 * 256 + 8
_STRINGS = ("backend", "profile", "phase", "sender", "recipient")
_LIMITS = {"contributors": 16, "step": 32, "attempt": 16, "vectors": 32, "length": 48}
_TOO_LONG = 1 << _LIMITS["length"]
_HASHES = {"job": 16, "members": 16, "key_id": 8}
_DIGITS = frozenset("0123456789abcdef")


class Place(NamedTuple):
    """A place in the protocol; whatever is used once is used once a place."""

    phase: str
    step: int = 0
    attempt: int = 0

    def __str__(self) -> str:
        """Form for error messages."""
        return f"{self.phase} step {self.step} attempt {self.attempt}"


class _Fields(NamedTuple):
    backend: str
    profile: str
    job: str
    members: str
    key_id: str
    phase: str
    step: int
    attempt: int
    recipient: str
    vectors: int
    length: int
    contributors: int
    sender: str = ""
    version: int = VERSION


class Header(_Fields):
    """What a contribution (with a sender) or a sum (without) says about itself.

    Parameters
    ----------
    backend, profile : str
        How the numbers are sealed.
    job, members, key_id : str
        Job id, member-list hash and key id, in hexadecimal.
    phase, step, attempt : str, int, int
        Place in the protocol.
    recipient : str
        Who can open the sum; empty: every member.
    vectors : int
        Vectors exchanged before this step.
    length : int
        Numbers sealed, check slots not counted.
    contributors : int
        Contributions that make the sum.
    sender : str
        Whose contribution this is; empty: it is the sum.
    """

    @property
    def place(self) -> Place:
        """Place in the protocol."""
        return Place(self.phase, self.step, self.attempt)

    def of(self, sender: str) -> "Header":
        """The same header for one sender's contribution; for the sum when empty."""
        return self._replace(sender=sender)

    def pack(self) -> bytes:
        """Canonical bytes; what cannot be packed is refused."""
        return self.pack_for(self.sender)

    def pack_for(self, sender: str) -> bytes:
        """Bytes of the header of one sender's contribution to this sum."""
        before, after = self._around
        name = _string("sender", sender)
        length = _START.size + len(before) + len(name) + len(after)
        size = -(-length // 8) * 8
        start = _START.pack(_MAGIC, self.version, size)
        return b"".join((start, before, name, after, bytes(size - length)))

    @cached_property
    def _around(self) -> tuple[bytes, bytes]:
        """What stands before and behind the sender's name."""
        hashes = _hashes(self.job, self.members, self.key_id)
        before = self._numbers() + hashes + _before(self.backend, self.profile, self.phase)
        return before, _string("recipient", self.recipient)

    def _numbers(self) -> bytes:
        numbers = (self.contributors, self.step, self.attempt, self.vectors, self.length)
        try:
            if self.length < _TOO_LONG:
                return _NUMBERS.pack(*numbers)
        except struct.error:
            pass
        for (name, bits), value in zip(_LIMITS.items(), numbers, strict=True):
            if not 0 <= value < 1 << bits:
                raise ProtocolError(f"The header field {name} is {value}; it must fit {bits} bits.")
        raise ProtocolError(f"The numbers {numbers} of a header cannot be packed.")

    @classmethod
    def unpack(cls, data: bytes | memoryview) -> tuple["Header", int]:
        """Read the header that some bytes begin with; gives it and its size."""
        start = bytes(data[:_LONGEST])
        size = int.from_bytes(start[_SIZE_AT : _SIZE_AT + 2], "little")
        return cls._parse(start[:size] if 0 < size <= len(start) else start), size

    @classmethod
    def _parse(cls, data: bytes) -> "Header":
        try:
            magic, version, size, *rest = _FIXED.unpack_from(data)
            if magic != _MAGIC:
                raise ValueError
            _check_version(version)
            numbers = dict(zip(_LIMITS, rest[:5], strict=True))
            hashes = {n: h.hex() for n, h in zip(_HASHES, rest[5:], strict=True)}
            named: dict[str, Any] = {**_strings(data[_FIXED.size : size]), **numbers}
            header = cls(**named, **hashes)
            if header.pack() != data:
                raise ValueError
        except (struct.error, ValueError, IndexError) as error:
            raise ProtocolError(
                f"A message of {len(data)} bytes does not begin with a header; "
                "it was altered or is no contribution."
            ) from error
        return header


@lru_cache(maxsize=64)
def _hashes(job: str, members: str, key_id: str) -> bytes:
    """Hashes one after the other."""
    for (name, size), text in zip(_HASHES.items(), (job, members, key_id), strict=True):
        if len(text) != 2 * size or not _DIGITS.issuperset(text):
            raise ProtocolError(
                f"The header field {name} is {text!r}; it must be {size} bytes in hexadecimal."
            )
    return bytes.fromhex(job + members + key_id)


@lru_cache(maxsize=64)
def _before(backend: str, profile: str, phase: str) -> bytes:
    """The strings before the sender's name."""
    return b"".join(map(_string, _STRINGS, (backend, profile, phase)))


@lru_cache(maxsize=4096)
def _string(name: str, text: str) -> bytes:
    """A string behind its length."""
    content = text.encode()
    if len(content) > 255:
        raise ProtocolError(f"The header field {name} is longer than 255 bytes; shorten it.")
    return bytes((len(content),)) + content


def packed_part(data: bytes | memoryview) -> bytes:
    """The bytes that stand where a header does, whatever they are."""
    size = int.from_bytes(data[_SIZE_AT : _SIZE_AT + 2], "little")
    return bytes(data[:size])


def _check_version(version: int) -> None:
    """Refuse a format of another version by name."""
    if version != VERSION:
        raise ProtocolError(
            f"A message has format version {version}, but this is version {VERSION}; "
            "let all parties run one release."
        )


def _strings(data: bytes) -> dict[str, str]:
    """Read the length-prefixed strings of a header."""
    found: dict[str, str] = {}
    at = 0
    for name in _STRINGS:
        end = at + 1 + data[at]
        found[name] = data[at + 1 : end].decode()
        at = end
    return found


def require_equal(found: Header, expected: Header) -> None:
    """Refuse a header that differs from the expected one, naming the first difference."""
    if found == expected:
        return
    for name, got, want in zip(Header._fields, found, expected, strict=True):
        if got != want:
            raise ProtocolError(
                f"A message for {expected.place} says {name} = {got!r} where {want!r} was "
                "expected; it is stale, misrouted or altered."
            )
