"""Messages that are too large travel in parts, each with its hash."""

import hashlib
import re
from collections.abc import Sequence

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data

PUT = "put"
GET = "get"
PROGRAM = "program"  # name of it in a message, if it is not the usual one of the run
NO_JOB = "none"
HASH_BYTES = 32
MOST_BYTES = 2**30
"""Bytes of one message in all its parts; what asks for more is refused."""

MOST_CARD_BYTES = 2**24
"""The same for the cards, which come before their job is known: room for tens of thousands."""

_ASKED = re.compile(r"([a-z]{1,16}) ([0-9a-zA-Z]{1,64}) ([0-9]{8})")


def part_bytes(megabytes: float) -> int:
    """Content of one message, with room left for names and hashes."""
    return int(megabytes * 2**20 * 15 / 16)


def asked(kind: str, job: str, step: int) -> str:
    """What a message is about, in one value: Flower checks every value at length."""
    return f"{kind} {job or NO_JOB} {step:08d}"


def read_asked(text: str) -> tuple[str, str, int]:
    """Kind, job and step of a message, and nothing that could leave a store."""
    found = _ASKED.fullmatch(text)
    if found is None:
        raise ProtocolError("The message names no proper job and step; it was altered.")
    return found[1], found[2], int(found[3])


def require_room(count: int, limit: int, most: int = MOST_BYTES) -> None:
    """Refuse a message of more parts than its bytes may take."""
    if count > count_parts(most, limit):
        raise ProtocolError(
            f"A message of {count} parts of {limit} bytes was announced where {most} bytes are "
            "the most; start the run again with fewer vectors in a block."
        )


def count_hashes(hashes: Data, limit: int) -> int:
    """Parts whose hashes these are; a length that does not fit, and too many, are refused."""
    if len(hashes) % HASH_BYTES:
        raise ProtocolError(
            f"Hashes of {len(hashes)} bytes came where a multiple of {HASH_BYTES} was expected; "
            "the message was altered."
        )
    require_room(len(hashes) // HASH_BYTES, limit)
    return len(hashes) // HASH_BYTES


def count_parts(size: int, limit: int) -> int:
    """Parts of at most `limit` bytes that a message of `size` bytes takes; none when empty."""
    return -(-size // limit)


def part_of(data: Data, index: int, limit: int) -> memoryview:
    """Part number `index`, without a copy."""
    if not 0 <= index < count_parts(len(data), limit):
        raise ProtocolError(
            f"Part {index} of a message of {count_parts(len(data), limit)} parts was asked for; "
            "start the run again."
        )
    return memoryview(data)[index * limit : (index + 1) * limit]


def hashes_of(data: Data, limit: int) -> bytes:
    """Hashes of all parts, one after the other."""
    return b"".join(
        hashlib.sha256(part_of(data, index, limit)).digest()
        for index in range(count_parts(len(data), limit))
    )


def join_parts(parts: Sequence[Data], hashes: bytes) -> bytes:
    """The whole message; a part that is missing, doubled or altered is refused."""
    if len(hashes) != HASH_BYTES * len(parts):
        raise ProtocolError(
            f"{len(parts)} parts of a message came where {len(hashes) // HASH_BYTES} were "
            "expected; one is missing or doubled, send it again."
        )
    for index, part in enumerate(parts):
        expected = hashes[HASH_BYTES * index : HASH_BYTES * (index + 1)]
        if hashlib.sha256(part).digest() != expected:
            raise ProtocolError(
                f"Part {index} of {len(parts)} of a message was altered; send it again."
            )
    return b"".join(parts)
