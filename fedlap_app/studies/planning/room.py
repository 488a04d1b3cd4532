"""Memory and disk that the parties of an offline phase need."""

from dataclasses import dataclass

from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import Part
from fedlap_app.studies.planning.sizes import WORD
from fedlap_app.studies.planning.traffic import Traffic

_MB = 2**20
# A reply exists as vectors, as sealed parts and joined; a request arrives and is opened.
_REPLY_COPIES, _REQUEST_COPIES = 3, 2
# Stored rows, and the own and the foreign block of the operator, with their indexes.
_ENTRY_BYTES = 2 * (WORD + 4)
# Both ends and the weight of a shared edge, sorted by partner and as they came.
_SHARED_BYTES = 6 * WORD


@dataclass(frozen=True)
class Room:
    """Megabytes (2^20 bytes) at the largest member, at the server and for all in one process."""

    member: float
    server: float
    together: float


def memory_of(phase: Phase, traffic: Traffic, process_mb: float) -> Room:
    """Peak memory; the server adds replies as they arrive and keeps the sums only."""
    own = [_memory(phase, part, traffic) for part in phase.shape.parts]
    sums = _sums(phase)
    server = 3 * sums + 2 * max(traffic.largest_reply.values())
    # In one process one member replies at a time, and whoever gathers the rows has the data too.
    kept = sum(
        2 * part.data_bytes + _matrices(part) + phase.footprint(part).held
        for part in phase.shape.parts
    )
    moving = max(_REPLY_COPIES * size for size in traffic.largest_reply.values())
    return Room(
        member=process_mb + max(own) / _MB,
        server=process_mb + server / _MB,
        together=process_mb + (kept + moving + server) / _MB,
    )


def disk_of(phase: Phase, traffic: Traffic) -> Room:
    """Largest use of the stores while a job runs; a new answer is written before the old goes."""
    own = [
        phase.footprint(part).held
        + phase.footprint(part).left
        + 2 * (traffic.largest_reply[part.name] + phase.footprint(part).state)
        + WORD * (part.nodes + 2 * part.external)
        for part in phase.shape.parts
    ]
    server = 2 * _sums(phase)
    return Room(max(own) / _MB, server / _MB, (sum(own) + server) / _MB)


def _memory(phase: Phase, part: Part, traffic: Traffic) -> int:
    return (
        part.data_bytes
        + _matrices(part)
        + phase.footprint(part).held
        + 3 * phase.footprint(part).state
        + _REPLY_COPIES * traffic.largest_reply[part.name]
        + _REQUEST_COPIES * traffic.largest_request[part.name]
    )


def _matrices(part: Part) -> int:
    return _ENTRY_BYTES * (part.entries + part.nodes) + _SHARED_BYTES * part.shared


def _sums(phase: Phase) -> int:
    """All sums of a step."""
    width = max((this.width for this in phase.rounds), default=0)
    return WORD * sum(frame.length(width) for frame in phase.frames.values())
