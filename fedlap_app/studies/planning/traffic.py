"""Round trips and bytes of an offline phase, with large messages sent in parts."""

import statistics
from dataclasses import dataclass, field

from fedlap_app.studies.planning import sizes
from fedlap_app.studies.planning.exchanges import Exchange, Phase
from fedlap_app.sums.job.coordinator import HANDSHAKE
from fedlap_app.sums.job.messages import HELLO
from fedlap_app.sums.job.parts import (
    GET,
    HASH_BYTES,
    PROGRAM,
    PUT,
    asked,
    count_parts,
    part_bytes,
)

_FACTS = len("seconds") + 3 * sizes.WORD  # in every reply


@dataclass
class Traffic:
    """What all messages take.

    Attributes
    ----------
    round_trips, handshake
        After the handshake, and in it.
    up, down
        Bytes from and to each member.
    largest_reply, largest_request
        Bytes of the largest messages of each member, before they are divided.
    about
        Bytes in every request that say what it belongs to.
    """

    round_trips: int = 0
    handshake: int = 0
    up: dict[str, int] = field(default_factory=dict)
    down: dict[str, int] = field(default_factory=dict)
    largest_reply: dict[str, int] = field(default_factory=dict)
    largest_request: dict[str, int] = field(default_factory=dict)
    about: int = 0

    @property
    def mean_up(self) -> float:
        """Mean bytes from a member."""
        return statistics.mean(self.up.values())

    @property
    def mean_down(self) -> float:
        """Mean bytes to a member."""
        return statistics.mean(self.down.values())

    def add(self, exchange: Exchange, limit: int) -> None:
        """Add one exchange; a message above the limit goes in parts, one part a round trip."""
        ahead = behind = 0
        for name, own in exchange.own.items():
            parts, down = _request(exchange, own, limit)
            more, up = _reply(exchange.reply[name], limit)
            ahead, behind = max(ahead, parts), max(behind, more)
            down += self.about
            self._count(name, up + _FACTS * parts, down + _parts(GET, "reply", 0, more))
            self._note(name, exchange.reply[name], exchange.common + own)
        trips = ahead + 1 + behind
        if exchange.kind in HANDSHAKE:
            self.handshake += trips
        else:
            self.round_trips += trips

    def _count(self, name: str, up: int, down: int) -> None:
        self.up[name] = self.up.get(name, 0) + up
        self.down[name] = self.down.get(name, 0) + down

    def _note(self, name: str, reply: int, request: int) -> None:
        self.largest_reply[name] = max(self.largest_reply.get(name, 0), reply)
        self.largest_request[name] = max(self.largest_request.get(name, 0), request)


def traffic_of(phase: Phase, message_mb: float, *, named: bool = False) -> Traffic:
    """Traffic of a whole phase; `named`: messages say which program of the run they belong to."""
    traffic = Traffic(about=len(PROGRAM) + len(phase.program.name) if named else 0)
    for exchange in phase.exchanges():
        traffic.add(exchange, part_bytes(message_mb))
    return traffic


def _request(exchange: Exchange, own: int, limit: int) -> tuple[int, int]:
    """Parts sent ahead, and bytes of the request with them."""
    job = "" if exchange.kind == HELLO else "0" * sizes.HEX
    total = _record(asked=len(asked(exchange.kind, job, 0)))
    if exchange.common + own <= limit:
        return 0, total + _record(body=exchange.common) + _record(body=own)
    parts = 0
    for which, size in (("common", exchange.common), ("own", own)):
        count = count_parts(size, limit)
        parts += count
        total += _record(hashes=HASH_BYTES * count) + _parts(PUT, which, size, count)
    return parts, total


def _reply(reply: int, limit: int) -> tuple[int, int]:
    """Parts fetched after the first, and bytes of the reply with them."""
    parts = count_parts(reply, limit)
    hashes = HASH_BYTES * parts if parts > 1 else 0
    return parts - 1, reply + parts * (_FACTS + len("body")) + _record(hashes=hashes)


def _parts(kind: str, which: str, size: int, count: int) -> int:
    """Bytes of the messages that carry or fetch parts."""
    place = len(asked(kind, "0" * sizes.HEX, 0))
    each = _record(asked=place, which=len(which), index=sizes.WORD)
    return count * each + size + (count * len("body") if size else 0)


def _record(**values: int) -> int:
    """Bytes of a record as Flower counts them: keys and values, an empty value is left out."""
    return sum(len(key) + size for key, size in values.items() if size)
