"""Bytes of everything that travels in an offline phase, from the code that packs it."""

from collections.abc import Iterable, Mapping
from functools import cache

from fedlap_app.sums.card import issue_card
from fedlap_app.sums.channel import Channel
from fedlap_app.sums.header import Header, Place, Sum
from fedlap_app.sums.identity import Identity
from fedlap_app.sums.job.spec import OfflineSpec

HEX = 32  # a job id, a hash of the phase's settings or a hello
WORD = 8

_PAIR_OVERHEAD = 512
_SLOT_BYTES = 4
_HASH_BYTES = 32


def packed(sizes: Iterable[int]) -> int:
    """Bytes of joined parts: a length before each, and filling up to 8 bytes behind it."""
    return sum(WORD + size + -size % WORD for size in sizes)


def named(parts: Mapping[str, int]) -> int:
    """Bytes of joined parts that have a name each."""
    return packed(size for name, part in parts.items() for size in (len(name.encode()), part))


@cache
def _header(
    backend: str, profile: str, phase: str, sender: str, recipients: tuple[str, ...]
) -> int:
    empty = Header(
        backend=backend,
        profile=profile,
        job="0" * HEX,
        members="0" * HEX,
        key_id="0" * 16,
        phase=phase,
        step=0,
        attempt=0,
        vectors=0,
        sums=tuple(Sum(recipient, 0, 0) for recipient in recipients),
        sender=sender,
    )
    return len(empty.pack())


def summed(
    spec: OfflineSpec, lengths: Mapping[str, int], *, sender: str = "", contributors: int = 1
) -> int:
    """Bytes of contributions (with a sender) or of one sum of so many, by recipients' numbers."""
    body = sum(
        spec.facts.body_bytes(spec.profile, Sum(recipient, length, contributors), summed=not sender)
        for recipient, length in lengths.items()
    )
    program = spec.program.name
    return _header(spec.backend, spec.profile, program, sender, tuple(lengths)) + body


@cache
def _sealed_overhead(phase: str, sender: str, recipient: str) -> int:
    channel = Channel(bytes(32), "0" * HEX, sender, recipient)
    return len(channel.seal(b"", Place(phase)))


def pair_message(spec: OfflineSpec, sender: str, recipient: str, slots: int) -> int:
    """Bytes of what a member seals for a peer in the handshake."""
    key = spec.facts.public_key_bytes(spec.profile) if spec.program.sums else 0
    content = _PAIR_OVERHEAD + _SLOT_BYTES * slots + key
    return _sealed_overhead("handshake", sender, recipient) + content


def solution(phase: str, leader: str, parts: Iterable[int]) -> int:
    """Bytes of the leader's sealed solution, with the hash of what it was told."""
    return _sealed_overhead(phase, leader, "") + packed((_HASH_BYTES, *parts))


@cache
def card(name: str) -> int:
    """Bytes of a member's signed card in a simulation; a deployment's has a hash of 64 more."""
    return len(issue_card(Identity.from_seed(bytes(32), name), name, bytes(32), "0" * HEX, ""))
