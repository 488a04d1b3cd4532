"""Messages that are too large travel in parts, each with its hash."""

import hashlib
from collections.abc import Sequence

from fedlap_app.errors import ProtocolError
from fedlap_app.methods.offline.messages import Data

PUT = "put"
GET = "get"
NO_JOB = "none"
HASH_BYTES = 32


def part_bytes(megabytes: float) -> int:
    """Content of one message, with room left for names and hashes."""
    return int(megabytes * 2**20 * 15 / 16)


def asked(kind: str, job: str, step: int) -> str:
    """What a message is about, in one value: Flower checks every value at length."""
    return f"{kind} {job or NO_JOB} {step:08d}"


def read_asked(text: str) -> tuple[str, str, int]:
    """Kind, job and step of a message, and nothing that could leave a store."""
    kind, job, step = (*text.split(" "), "", "")[:3]
    if not job.isalnum() or not step.isdecimal():
        raise ProtocolError("The message names no proper job and step; it was altered.")
    return kind, job, int(step)


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
