"""A grid that knows the organisations behind its nodes."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from logging import WARNING

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.grids.carrier import WrappedGrid
from fedlap_app.methods.base import Schema
from fedlap_app.sums.program import Extent

POLL_SECONDS = 0.2
_MOST_TEXT = 2000  # characters of a refusal
RETRIES = 5
REFUSAL = "refusal"
LOOK = (
    "start the processes there; if they run, their log and `fedlap doctor` there say whether a "
    "key, a certificate or the clock is the reason"
)


@dataclass(frozen=True)
class Member:
    """One organisation as the server knows it."""

    name: str
    node_id: int
    version: str
    settings: str
    schema: str
    classes: int
    features: int
    examples: int
    categories: int = 0
    inputs: int = 0
    nodes: int = 0
    asks: int = 0


def extent_of(members: Sequence[Member]) -> Extent:
    """What a program's rounds depend on; nodes where the method counts them."""
    first = members[0]
    nodes = sum(member.nodes for member in members)
    return Extent(nodes, first.features, first.categories, first.classes)


def schema_of(members: Sequence[Member]) -> Schema:
    """What all members share, and how many nodes there are where the method counts them."""
    first = members[0]
    return Schema(first.inputs, first.classes, sum(member.nodes for member in members))


@dataclass(frozen=True)
class Quorum:
    """When replies are enough without those of everyone.

    Attributes
    ----------
    least
        How many must have answered.
    seconds
        How long a connected organisation is waited for once that many have.
    """

    least: int
    seconds: float


@dataclass
class Traffic:
    """Bytes that one organisation received and sent, its last sign of life, what was repeated."""

    down: int = 0
    up: int = 0
    seen: float = 0.0
    retries: int = 0


class MemberGrid(WrappedGrid):
    """A grid that knows its members: replies come sorted by organisation, or an error names who.

    Wraps any other grid. It looks for replies five times a second, where Flower's own
    `send_and_receive` sleeps for three seconds between two looks.

    Attributes
    ----------
    traffic
        Bytes of each organisation.
    quorum
        When to go on without some; None: never.
    absences
        How often the run went on without an organisation.
    """

    def __init__(self, grid: Grid) -> None:
        super().__init__(grid)
        self._names: dict[int, str] = {}
        self._members: list[int] = []
        self.traffic: dict[str, Traffic] = {}
        self.quorum: Quorum | None = None
        self.absences: Counter[str] = Counter()
        self.watch: Callable[[], None] = lambda: None  # called while replies are waited for

    def introduce(self, members: Iterable[Member]) -> None:
        """Learn which node is which organisation."""
        for member in members:
            self._members.append(member.node_id)
            self._names[member.node_id] = member.name
            self.traffic.setdefault(member.name, Traffic(seen=time.time()))

    def resent_to(self, name: str) -> int:
        """How many messages to an organisation had to be sent again."""
        counts = self.resent()
        return sum(counts.get(node, 0) for node, each in self._names.items() if each == name)

    def registered_names(self) -> dict[int, str]:
        """Names under which connected nodes were registered; errors use them from now on."""
        found = super().registered_names()
        self._names = {**found, **self._names}
        return found

    def get_node_ids(self) -> Iterable[int]:
        """Nodes of the members once they are known, so that a strategy asks all of them."""
        return self._members or self._grid.get_node_ids()

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push through the wrapped grid."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Pull through the wrapped grid."""
        return self._grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> list[Message]:
        """Send, wait for the replies of all, or of a quorum, and return them sorted by name."""
        sent = list(messages)
        if not sent:
            return []
        replies = self._exchange(sent, 3600.0 if timeout is None else timeout)
        if not self._is_enough(sent, replies):
            self._require_all(sent, replies, timeout)
        replies = self._present(sent, replies)
        for message in sent:
            self._count(message, sent=True)
        for reply in replies:
            self._count(reply, sent=False)
        return sorted(replies, key=self._order)

    def ask(
        self,
        members: Sequence[Member],
        message_type: str,
        content: RecordDict | Callable[[Member], RecordDict],
        timeout: float,
    ) -> dict[str, RecordDict]:
        """Content of each reply by the member's name, in the order of names."""
        messages = [
            Message(
                content=content(member) if callable(content) else content,
                dst_node_id=member.node_id,
                message_type=message_type,
            )
            for member in members
        ]
        replies = self.send_and_receive(messages, timeout=timeout)
        return {self.name_of(reply): reply.content for reply in replies}

    def name_of(self, reply: Message) -> str:
        """The organisation that a reply is from."""
        return self._name(reply.metadata.src_node_id)

    def stream(
        self, messages: Iterable[Message], *, timeout: float, all_needed: bool = True
    ) -> Iterator[tuple[str, RecordDict]]:
        """Organisation and content of each reply, as they arrive.

        A client whose process died is asked again a few times: handlers give the same answer.

        Parameters
        ----------
        messages, timeout
            What is sent, and seconds for all of it.
        all_needed
            Whether it fails when somebody is missing (default); else the quorum says when not.
        """
        waiting: dict[str, Message] = {}
        tries: Counter[int] = Counter()
        started = looked = time.monotonic()
        quorum = None if all_needed else self.quorum
        failed: list[tuple[Message, Message]] = []
        answered = 0
        for message in messages:
            waiting.update(self._push(message))
            if time.monotonic() - looked > POLL_SECONDS:
                for found in self._collect(waiting, tries, timeout, failed if quorum else None):
                    answered += 1
                    yield found
                looked = time.monotonic()
        while waiting:
            for found in self._collect(waiting, tries, timeout, failed if quorum else None):
                answered += 1
                yield found
            passed = time.monotonic() - started
            enough = quorum is not None and answered >= quorum.least
            if waiting and quorum is not None and enough:
                missing = {message.metadata.dst_node_id for message in waiting.values()}
                if passed >= quorum.seconds or all(map(self.is_away, missing)):
                    for node in missing:
                        self._note_absence(node, "no reply in time")
                    return
            if waiting and passed >= timeout:
                self._require_all(list(waiting.values()), [], timeout)
            if waiting:
                self.watch()
                time.sleep(POLL_SECONDS)
        if quorum is not None and answered < quorum.least:
            self._require_all([sent for sent, _ in failed], [reply for _, reply in failed], timeout)

    def _push(self, message: Message) -> dict[str, Message]:
        self._count(message, sent=True)
        return {key: message for key in self._grid.push_messages([message]) if key}

    def _collect(
        self,
        waiting: dict[str, Message],
        tries: Counter[int],
        timeout: float,
        failed: list[tuple[Message, Message]] | None = None,
    ) -> Iterator[tuple[str, RecordDict]]:
        """Replies that have come; failed messages are pushed again, refused ones end the run.

        But for those that may be missing, which are put into `failed`.
        """
        for reply in self._grid.pull_messages(list(waiting)):
            message = waiting.pop(reply.metadata.reply_to_message_id)
            node = message.metadata.dst_node_id
            if reply.has_error() and tries[node] < RETRIES:
                time.sleep(POLL_SECONDS * 2 ** tries[node])
                tries[node] += 1
                if (traffic := self.traffic.get(self._name(node))) is not None:
                    traffic.retries += 1
                again = Message(message.content, node, message.metadata.message_type)
                waiting.update(self._push(again))
                continue
            if failed is not None and (reason := _failure(reply)):
                failed.append((message, reply))
                self._note_absence(node, reason)
                continue
            self._require_all([message], [reply], timeout)
            self._count(reply, sent=False)
            yield self._name(node), reply.content

    def _exchange(self, sent: list[Message], timeout: float) -> list[Message]:
        waiting = {key for key in self._grid.push_messages(sent) if key}
        started = time.monotonic()
        replies: list[Message] = []
        while waiting:
            arrived = list(self._grid.pull_messages(waiting))
            replies.extend(arrived)
            waiting -= {reply.metadata.reply_to_message_id for reply in arrived}
            passed = time.monotonic() - started
            if not waiting or passed >= timeout or self._goes_on(sent, replies, passed):
                break
            self.watch()
            time.sleep(POLL_SECONDS)
        return replies

    def _is_enough(self, sent: list[Message], replies: list[Message]) -> bool:
        """Whether a quorum has answered with something of use."""
        if self.quorum is None:
            return False
        useful = sum(not _failure(reply) for reply in replies)
        return useful >= min(self.quorum.least, len(sent))

    def _goes_on(self, sent: list[Message], replies: list[Message], passed: float) -> bool:
        """Whether those who are missing are waited for no longer."""
        if self.quorum is None or not self._is_enough(sent, replies):
            return False
        if passed >= self.quorum.seconds:
            return True
        answered = {reply.metadata.src_node_id for reply in replies}
        missing = {message.metadata.dst_node_id for message in sent} - answered
        return all(map(self.is_away, missing))

    def _present(self, sent: list[Message], replies: list[Message]) -> list[Message]:
        """Replies of use; who is missing is named in the log and counted."""
        failures = {reply.metadata.src_node_id: _failure(reply) for reply in replies}
        for message in sent:
            node = message.metadata.dst_node_id
            if reason := failures.get(node, "no reply in time"):
                self._note_absence(node, reason)
        return [reply for reply in replies if not failures[reply.metadata.src_node_id]]

    def _note_absence(self, node: int, reason: str) -> None:
        self.absences[self._name(node)] += 1
        log(WARNING, "Going on without %s: %s", self._name(node), reason)

    def _require_all(
        self, sent: list[Message], replies: list[Message], timeout: float | None
    ) -> None:
        """Raise one sentence that names every organisation that failed or did not answer."""
        reasons: dict[str, list[str]] = {}
        for reply in sorted(replies, key=self._order):
            if reason := _failure(reply):
                name = _who(reply) or self._name(reply.metadata.src_node_id)
                reasons.setdefault(reason, []).append(name)
        if reasons:
            raise RunError(
                "; ".join(f"{_names(names)}: {reason}" for reason, names in reasons.items())
            )
        answered = {reply.metadata.src_node_id for reply in replies}
        missing = {message.metadata.dst_node_id for message in sent} - answered
        away = [self._name(node) for node in missing if self.is_away(node)]
        if away:
            raise RunError(f"{_names(away)} did not connect again within {timeout:g} s: {LOOK}")
        silent = [self._name(node) for node in missing]
        if silent:
            raise RunError(
                f"no reply from {_names(silent)} within {timeout:g} s: look at the log there, "
                "or raise step-timeout"
            )

    def _name(self, node_id: int) -> str:
        return self._names.get(node_id, f"node {node_id}")

    def _order(self, reply: Message) -> tuple[str, int]:
        return self._name(reply.metadata.src_node_id), reply.metadata.src_node_id

    def _count(self, message: Message, *, sent: bool) -> None:
        node = message.metadata.dst_node_id if sent else message.metadata.src_node_id
        traffic = self.traffic.get(self._name(node))
        if traffic is not None:
            if sent:
                traffic.down += payload_bytes(message.content)
            else:
                traffic.seen = time.time()
                traffic.up += payload_bytes(message.content)


def payload_bytes(content: RecordDict) -> int:
    """Bytes of the arrays and values of a message, without Flower's envelope."""
    return sum(
        sum(len(array.data) for array in record.values())
        if isinstance(record, ArrayRecord)
        else _record_bytes(record)
        for record in content.values()
    )


def _record_bytes(record: ConfigRecord | MetricRecord) -> int:
    try:
        return record.count_bytes()
    except (ValueError, IndexError):  # Flower cannot count an empty value, and this app sends none
        raise ProtocolError(
            "a message holds an empty value: it was not made by this app, start the run again"
        ) from None


def _failure(reply: Message) -> str:
    """Why a reply is of no use; empty when it is fine."""
    if reply.has_error():
        reason = (reply.error.reason or "").strip().splitlines()
        return f"error {reply.error.code}, {_shown(reason[-1]) if reason else 'no reason given'}"
    return _refusal(reply).get("reason", "")


def _who(reply: Message) -> str:
    """The name by which a client refuses; it may fail before the server has learned it."""
    return "" if reply.has_error() else _refusal(reply).get("who", "")


def _refusal(reply: Message) -> dict[str, str]:
    record = reply.content.get(REFUSAL)
    return {key: _shown(str(value)) for key, value in record.items()} if record else {}


def _shown(text: str) -> str:
    """What a client says, in a form that can do a terminal or a log no harm."""
    plain = "".join(each if each.isprintable() else " " for each in text[: _MOST_TEXT + 1])
    return plain if len(plain) <= _MOST_TEXT else f"{plain[:_MOST_TEXT]}..."


def _names(names: Sequence[str], most: int = 5) -> str:
    """A list of organisations that stays readable when there are many."""
    shown = sorted(names)[:most]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")
