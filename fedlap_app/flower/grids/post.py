"""Requests of the offline phase as Flower messages; what is too large travels in parts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flwr.app import ConfigRecord, Message, RecordDict

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.grids.member_grid import Member, MemberGrid
from fedlap_app.settings import Settings
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.messages import Request
from fedlap_app.sums.job.parts import (
    GET,
    PROGRAM,
    PUT,
    asked,
    count_hashes,
    count_parts,
    hashes_of,
    join_parts,
    part_bytes,
    part_of,
)

MESSAGE_TYPE = "query.offline"
_LONGEST = 1e9  # seconds that a client could have spent


@dataclass(frozen=True)
class Facts:
    """Seconds that a client spent with a message, with sealing and with opening."""

    seconds: float = 0.0
    sealing: float = 0.0
    opening: float = 0.0


class Post:
    """Carries requests to the members and replies back.

    Parameters
    ----------
    grid
        The grid, which knows its members.
    members
        Who takes part.
    settings
        Settings of the run.
    program
        Name of what the sums are for; the method's own one goes without saying.
    """

    def __init__(
        self, grid: MemberGrid, members: Sequence[Member], settings: Settings, program: str
    ) -> None:
        self._grid = grid
        self._about = {} if program == settings.possible_programs[0] else {PROGRAM: program}
        self._nodes = {member.name: member.node_id for member in members}
        self._limit = part_bytes(settings.message_mb)
        self._timeout = settings.step_timeout
        self.trips = 0

    def exchange(self, requests: Mapping[str, Request]) -> Iterator[tuple[str, Data, Facts]]:
        """Member, reply and facts of every reply, as they arrive; `trips` counts round trips."""
        self.trips = 1
        split = {n: r for n, r in requests.items() if len(r.common) + len(r.own) > self._limit}
        self._put(split)
        commons: dict[int, ConfigRecord] = {}
        contents = {
            name: self._content(request, name in split, commons)
            for name, request in requests.items()
        }
        whole: dict[str, tuple[bytes, list[Data], Facts]] = {}
        for name, content in self._send(contents):
            body, hashes = _bytes(content, "body"), _bytes(content, "hashes")
            if hashes:
                count_hashes(hashes, self._limit)
                whole[name] = hashes, [body], _facts(content)
            else:
                yield name, body, _facts(content)
        self._get(requests, whole)
        for name, (hashes, parts, facts) in whole.items():
            yield name, join_parts(parts, hashes), facts

    def _content(
        self, request: Request, split: bool, commons: dict[int, ConfigRecord]
    ) -> RecordDict:
        """A request as records: what all get is one object, which Flower sends once."""
        key = 2 * id(request.common) + split
        if key not in commons:
            commons[key] = self._record(request.common, split)
        own = self._record(request.own, split)
        own["asked"] = asked(request.kind, request.job, request.step)
        own.update(self._about)
        return RecordDict({"own": own, "common": commons[key]})

    def _record(self, data: Data, split: bool) -> ConfigRecord:
        """Content, or the hashes of its parts; Flower cannot count an empty value."""
        if not len(data):
            return ConfigRecord({})
        if split:
            return ConfigRecord({"hashes": hashes_of(data, self._limit)})
        return ConfigRecord({"body": bytes(data)})

    def _put(self, requests: Mapping[str, Request]) -> None:
        """Send the parts of large requests ahead, one part a round trip."""
        queues: dict[str, list[tuple[str, int]]] = {}
        for name, request in requests.items():
            queues[name] = [
                (which, index)
                for which in ("common", "own")
                for index in range(count_parts(len(getattr(request, which)), self._limit))
            ]
        while any(queues.values()):
            contents = {}
            for name, queue in queues.items():
                if queue:
                    which, index = queue.pop(0)
                    data = part_of(getattr(requests[name], which), index, self._limit)
                    contents[name] = _part(PUT, requests[name], which, index, data)
            for _ in self._send(contents):
                pass
            self.trips += 1

    def _get(
        self,
        requests: Mapping[str, Request],
        whole: Mapping[str, tuple[bytes, list[Data], Facts]],
    ) -> None:
        """Fetch the rest of large replies, one part a round trip."""
        while True:
            contents = {
                name: _part(GET, requests[name], "reply", len(parts), b"")
                for name, (hashes, parts, _) in whole.items()
                if len(parts) < count_hashes(hashes, self._limit)
            }
            if not contents:
                return
            for name, content in self._send(contents):
                body = _bytes(content, "body")
                if len(body) > self._limit:
                    raise ProtocolError(
                        f"a part of {len(body)} bytes came from {name} where {self._limit} are the "
                        "most: it runs other settings, start the run again"
                    )
                whole[name][1].append(body)
            self.trips += 1

    def _send(self, contents: Mapping[str, RecordDict]) -> Iterator[tuple[str, RecordDict]]:
        messages = (
            Message(content=content, dst_node_id=self._nodes[name], message_type=MESSAGE_TYPE)
            for name, content in contents.items()
        )
        return self._grid.stream(messages, timeout=self._timeout)


def _part(kind: str, request: Request, which: str, index: int, data: Data) -> RecordDict:
    own = ConfigRecord(
        {
            "asked": asked(kind, request.job, request.step),
            "which": which,
            "index": index,
        }
    )
    if len(data):
        own["body"] = bytes(data)
    return RecordDict({"own": own, "common": ConfigRecord({})})


def _bytes(content: RecordDict, key: str) -> bytes:
    record = content.get("reply")
    value = record.get(key, b"") if isinstance(record, ConfigRecord) else None
    if not isinstance(value, bytes):
        raise ProtocolError(f"a reply carries no {key}: the client runs another app")
    return value


def _facts(content: RecordDict) -> Facts:
    record = content.get("reply")
    taken = record.get("seconds") if isinstance(record, ConfigRecord) else None
    if not isinstance(taken, list) or len(taken) != 3:
        return Facts()
    seconds = [each for each in taken if isinstance(each, int | float) and 0 <= each < _LONGEST]
    return Facts(*map(float, seconds)) if len(seconds) == len(taken) else Facts()
