"""The server's side of the offline phase: which request comes next; it holds no key.

The caller sends `requests`, gives every reply to `take` as it arrives, and calls `advance` when
all are there, until `done`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.store.packing import Data, pack, pack_named, text, unpack, unpack_named
from fedlap_app.sums.card import Roster, read_card
from fedlap_app.sums.job.checkpoint import Checkpoint, Checkpoints
from fedlap_app.sums.job.handshake import pack_senders
from fedlap_app.sums.job.messages import (
    CARDS,
    COMPARE,
    CONTRIBUTION,
    DONE,
    HELLO,
    MISMATCH,
    PAIRS,
    REUSE,
    ROWS,
    SHARE,
    SOLUTION,
    SUMS,
    WAITING,
    HelloReply,
    Request,
)
from fedlap_app.sums.job.mismatch import describe
from fedlap_app.sums.job.price import pack_price
from fedlap_app.sums.job.step_sums import Agreed, StepSums
from fedlap_app.sums.program import Program

HANDSHAKE = (HELLO, REUSE, CARDS, PAIRS, COMPARE)


@dataclass(frozen=True)
class Choices:
    """What the run asks of the phase.

    Attributes
    ----------
    hello
        An id that is new for every run.
    program
        What the sums are for.
    hide_topology
        Whether everyone sends to everyone.
    backend, profile
        How the members seal what is summed, by the settings of the run, which a ServerApp always
        gives; an empty profile is the usual one, an empty back end that of whoever comes first.
    resume
        Go on with the job of the checkpoint, if all have it.
    refresh
        Run the program again even if all hold its result.
    """

    hello: str
    program: Program
    hide_topology: bool = True
    backend: str = ""
    profile: str = ""
    resume: bool = True
    refresh: bool = False


class Coordinator:
    """The server in one offline phase.

    Parameters
    ----------
    names
        The members.
    choices
        What the run asks for.
    checkpoints
        Where unfinished jobs are kept.
    """

    def __init__(self, names: Sequence[str], choices: Choices, checkpoints: Checkpoints) -> None:
        if len(names) < choices.program.least_members:
            raise RunError(
                f"{len(names)} organisation takes part; the offline phase needs two or more: add "
                "one, or train with the method fedavg or central"
            )
        self.names = tuple(sorted(names))
        self.choices = choices
        self.done = self.reused = self.resumed = self.simulated = False
        self.senders: dict[str, tuple[str, ...]] | None = None
        self.facts: Mapping[str, Any] = {}
        self.told: dict[str, bytes] = {}
        self.lengths: dict[str, int] = {}
        self._checkpoints = checkpoints
        self._roster: Roster | None = None
        self._replies: dict[str, list[memoryview]] = {}
        self._sums: StepSums | None = None
        self._ask(Request(HELLO, "", 0, choices.hello.encode()))

    def _ask(self, request: Request, own: Mapping[str, Data] | None = None) -> None:
        """Set the next requests; `own` is what each member gets for itself, if it is asked."""
        own = dict.fromkeys(self.names, b"") if own is None else own
        self.requests = {name: replace(request, own=part) for name, part in own.items()}
        self._replies = {}
        self._sums = None
        if request.kind in (PAIRS, SUMS):
            chosen, members = self.choices, self.roster.members_hash
            agreed = Agreed(
                backend=chosen.backend,
                profile=chosen.profile,
                job=request.job,
                members=members,
                phase=chosen.program.name,
                step=request.step,
            )
            self._sums = StepSums(agreed, self.senders_of)

    @property
    def request(self) -> Request:
        """The current request, without what is for one member."""
        return next(iter(self.requests.values()))

    @property
    def roster(self) -> Roster:
        """Cards of the members, after the hello."""
        if self._roster is None:
            raise ProtocolError("The members have not shown their cards yet.")
        return self._roster

    def senders_of(self, recipient: str) -> tuple[str, ...]:
        """Who contributes to the sums of a recipient."""
        if not recipient:
            return self.names
        if recipient not in self.names:
            raise ProtocolError(f"A contribution is for {recipient!r}, who is no member.")
        if self.senders is not None:
            return self.senders[recipient]
        return tuple(name for name in self.names if name != recipient)

    def take(self, name: str, reply: Data) -> None:
        """Take the reply of one member; contributions are added at once and not kept."""
        if name not in self.requests or name in self._replies:
            raise ProtocolError(f"A second or foreign reply came from {name!r}; it is refused.")
        parts = unpack(reply)
        if self._sums is not None and parts and bytes(parts[0]) == CONTRIBUTION:
            _require_parts(parts, 2, name)
            self._sums.add(name, parts[1])
            parts = parts[:1]
        self._replies[name] = [memoryview(bytes(part)) for part in parts]

    def advance(self, price: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Decide what comes next; every member has replied.

        Parameters
        ----------
        price
            For each member what the phase has cost so far, for its certificate.
        """
        missing = [name for name in self.requests if name not in self._replies]
        if missing:
            raise ProtocolError(f"No reply from {', '.join(missing)}; wait for all.")
        kind = self.request.kind
        if kind == HELLO:
            self._after_hello()
        elif kind == CARDS:
            self._after_cards()
        elif kind in (PAIRS, SUMS):
            self._after_sums(price or {})
        elif kind == COMPARE:
            raise RunError(describe(self._replies))
        else:
            self._tags({DONE})
            self.reused = kind == REUSE
            self._finish()

    def _finish(self) -> None:
        self.done = True
        self._checkpoints.drop(self.roster.settings, self.roster.members_hash)

    def _after_hello(self) -> None:
        """Reuse a result that all hold, go on with a job that all have, or start a new one."""
        replies = {n: HelloReply.unpack(pack(*parts)) for n, parts in self._replies.items()}
        cards = {name: reply.card for name, reply in replies.items()}
        roster = Roster(tuple(read_card(cards[name]) for name in self.names))
        if roster.names != self.names:
            raise ProtocolError("A member shows the card of another one; start the run again.")
        self._roster = roster
        self.simulated = all(reply.simulated for reply in replies.values())
        members = self.roster.members_hash
        if len({card.settings for card in roster.cards}) > 1:
            raise RunError("the organisations see different settings: start the run again")
        common = pack(self.choices.hello.encode(), *cards.values())
        finished = _shared([reply.finished for reply in replies.values()], members)
        if finished and not self.choices.refresh:
            self._ask(Request(REUSE, finished[0], 0, common))
        elif not self._resume(_shared([reply.open for reply in replies.values()], members)):
            self._ask(Request(CARDS, self.roster.job, 0, common))

    def _resume(self, jobs: Sequence[str]) -> bool:
        """Adopt the checkpoint, if all members have its job."""
        if self.choices.refresh or not self.choices.resume:
            return False
        found = self._checkpoints.read(self.roster.settings, self.roster.members_hash)
        if found is None or found.facts["job"] not in jobs or set(found.requests) != {*self.names}:
            return False
        senders = found.facts["senders"]
        self.senders = senders and {name: tuple(some) for name, some in senders.items()}
        own = {name: request.own for name, request in found.requests.items()}
        self._ask(next(iter(found.requests.values())), own)
        self.facts, self.resumed = found.facts, True
        return True

    def checkpoint(self, facts: Mapping[str, Any]) -> None:
        """Write the next requests to the checkpoint, with counters of the caller."""
        if self.done or self.request.kind in (HELLO, REUSE, CARDS, COMPARE):
            return
        known = {**facts, "senders": self.senders}
        self._checkpoints.write(
            self.roster.settings,
            self.roster.members_hash,
            Checkpoint(self.requests, known),
            durable=not self.simulated,
        )

    def _after_cards(self) -> None:
        """Hand every member what the others sealed for it."""
        boxes: dict[str, dict[str, Data]] = {name: {} for name in self.names}
        partners = {}
        for sender, parts in self._replies.items():
            shown, sealed = _require_parts(parts, 2, sender)
            partners[sender] = tuple(text(name) for name in unpack(shown))
            if not {*partners[sender]} <= {*self.names} - {sender}:
                raise ProtocolError(
                    f"{sender!r} shares edges with somebody who is no other member; start again."
                )
            self._post(sender, sealed, boxes)
        self.senders = None if self.choices.hide_topology else partners
        request = Request(PAIRS, self.request.job, 1, pack_senders(self.senders))
        self._ask(request, {name: pack_named(box) for name, box in boxes.items()})

    def _after_sums(self, price: Mapping[str, Mapping[str, Any]]) -> None:
        """Hand out sums, hashes of edges that differ, or the solution of the leader; or end."""
        tags = self._tags(self._expected())
        job, step = self.request.job, self.request.step + 1
        if MISMATCH in tags:
            self._ask(Request(COMPARE, job, step), self._mismatches())
        elif tags == {ROWS}:
            self.told = {
                name: bytes(_require_parts(parts, 2, name)[1])
                for name, parts in self._replies.items()
            }
            self._finish()
        elif tags == {DONE}:
            self._finish()
        elif tags == {CONTRIBUTION} and self._sums is not None:
            sums, common = self._sums, self._sums.small()
            for name, length in sums.lengths.items():
                self.lengths[name] = max(length, self.lengths.get(name, 0))
            own = {name: sums.block(name) for name in self.names}
            self._ask(Request(SUMS, job, step, common), own)
        else:
            solved = [
                _require_parts(parts, 2, name)[1]
                for name, parts in self._replies.items()
                if bytes(parts[0]) == SOLUTION
            ]
            if CONTRIBUTION in tags or len(solved) != 1:
                raise ProtocolError("The members are not in the same step; start a new job.")
            own = {name: pack_price(price.get(name, {})) for name in self.names}
            self._ask(Request(SHARE, job, step, bytes(solved[0])), own)

    def _expected(self) -> set[bytes]:
        """What replies to sums, and to the end of the handshake, may be."""
        program = self.choices.program
        if not program.sums:
            return {ROWS, MISMATCH}
        return {CONTRIBUTION, MISMATCH, *((SOLUTION, WAITING) if program.solution else (DONE,))}

    def _mismatches(self) -> dict[str, Data]:
        """Hashes of edges, for those who disagree; nobody else is asked."""
        boxes: dict[str, dict[str, Data]] = {name: {} for name in self.names}
        for sender, parts in self._replies.items():
            if bytes(parts[0]) == MISMATCH:
                self._post(sender, _require_parts(parts, 2, sender)[1], boxes)
        return {name: pack_named(box) for name, box in boxes.items() if box}

    def _post(self, sender: str, sealed: Data, boxes: dict[str, dict[str, Data]]) -> None:
        """Put what a member sealed for others into their boxes."""
        for recipient, data in unpack_named(sealed).items():
            if recipient == sender or recipient not in boxes:
                raise ProtocolError(
                    f"{sender!r} sealed a message for {recipient[:100]!r}, who is no other member; "
                    "start the run again."
                )
            boxes[recipient][sender] = data

    def _tags(self, allowed: set[bytes]) -> set[bytes]:
        """What the replies say that they are."""
        tags = {bytes(parts[0]) if parts else b"" for parts in self._replies.values()}
        if not tags <= allowed:
            raise ProtocolError("A reply is not what was asked for; start a new job.")
        return tags


def _shared(lists: Sequence[Sequence[tuple[str, str]]], members: str) -> list[str]:
    """Jobs that all list with these members."""
    sets = [{job for job, hashed in some if hashed == members} for some in lists]
    return sorted(set.intersection(*sets))


def _require_parts(parts: Sequence[memoryview], count: int, name: str) -> Sequence[memoryview]:
    """The parts of a reply, if there are so many."""
    if len(parts) != count:
        raise ProtocolError(
            f"A reply of {name!r} has {len(parts)} parts where {count} were expected; let all "
            "parties run one release."
        )
    return parts
