"""A grid that does not lose replies: what a dead node, client or link swallowed is sent again.

Flower drops a message when the node that took it dies, and its own `send_and_receive` sleeps for
three seconds between two looks. This grid stands between Flower's and those who look for replies
as often as they like. A message counts as lost when

- Flower says that its node, the message or the reply is gone, or that the client's process died;
- its node was activated anew since the message was sent: whatever it held is gone;
- Flower's API failed while the message was pushed or its reply pulled.

A lost message is sent again once its node is connected. Handlers give the same answer to the same
message, so one that was not lost after all does no harm.
"""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from logging import WARNING

import httpx
from flwr.app import Message
from flwr.common.constant import ErrorCode
from flwr.common.logger import log
from flwr.serverapp import Grid

from fedlap_app.errors import RunError
from fedlap_app.flower.grids.carrier import WrappedGrid, addressed

_LOOK_SECONDS = 2.0  # between two looks at who is connected
_CALL_SECONDS = 30.0  # for which Flower may repeat one call of its API
_CRASHES = 5  # of a client's process over one message
_MOST_PENDING = 10_000
_GONE = (
    ErrorCode.MESSAGE_UNAVAILABLE,
    ErrorCode.REPLY_MESSAGE_UNAVAILABLE,
    ErrorCode.NODE_UNAVAILABLE,
    ErrorCode.CLIENT_APP_CRASHED,
)


@dataclass
class _Sent:
    """A message without a reply; `flower` is Flower's id of it while it is on its way."""

    message: Message
    flower: str = ""
    activated: str = ""
    crashes: int = 0

    @property
    def node(self) -> int:
        return self.message.metadata.dst_node_id


class PollingGrid(WrappedGrid):
    """Flower's grid with replies that are not lost.

    Parameters
    ----------
    grid
        The grid of the run.
    patience
        Seconds without any answer of Flower's API after which the run ends.
    """

    def __init__(self, grid: Grid, patience: float) -> None:
        super().__init__(grid)
        self._patience = patience
        self._pending: dict[str, _Sent] = {}
        self._count = 0
        self._activations: dict[int, str] = {}
        self._registered: dict[int, str] = {}
        self._looked = 0.0
        self._failing_since: float | None = None
        self._resent: Counter[int] = Counter()
        # Flower would repeat a call for ever; a shorter limit leaves the decision to this class.
        # Its class is not named here: its import brings a database and a web server along.
        invoker = getattr(grid, "_retry_invoker", None)
        if invoker is not None:
            invoker.max_time = min(_CALL_SECONDS, patience)

    def get_node_ids(self) -> Iterable[int]:
        """Nodes that are connected; none while Flower's API fails."""
        self._look()
        return list(self._activations)

    def registered_names(self) -> dict[int, str]:
        """Names under which the connected nodes were registered, if Flower tells them."""
        return {
            node: self._registered[node] for node in self._activations if node in self._registered
        }

    def resent(self) -> Mapping[int, int]:
        """How many messages were sent again to each node."""
        return self._resent

    def is_away(self, node: int) -> bool:
        """Whether a node was not there at the last look."""
        return node not in self._activations

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Push messages; an id is given to each, even if it has to be pushed again later."""
        keys = []
        for message in messages:
            self._count += 1
            keys.append(f"polled-{self._count}")
            self._pending[keys[-1]] = _Sent(message)
        for key in [*islice(self._pending, max(0, len(self._pending) - _MOST_PENDING))]:
            del self._pending[key]
        self._push([self._pending[key] for key in keys])
        return keys

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Replies that have come; what was lost is sent again first."""
        asked = {key: self._pending[key] for key in message_ids if key in self._pending}
        self._send_again(asked.values())
        waiting = {sent.flower: key for key, sent in asked.items() if sent.flower}
        replies = []
        for reply in self._pull(list(waiting)) if waiting else ():
            key = waiting[reply.metadata.reply_to_message_id]
            if self._is_lost(reply, asked[key]):
                asked[key].flower = ""
                continue
            # An error that Flower made bears no node: those above name who failed.
            replies.append(addressed(reply, reply_to=key, source=asked[key].node))
            del self._pending[key]
        return replies

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Send and wait for all replies, looking five times a second."""
        waiting = {*self.push_messages(messages)}
        deadline = time.monotonic() + (3600.0 if timeout is None else timeout)
        replies: list[Message] = []
        while waiting and time.monotonic() < deadline:
            arrived = self.pull_messages(waiting)
            replies.extend(arrived)
            waiting -= {reply.metadata.reply_to_message_id for reply in arrived}
            if waiting:
                time.sleep(0.2)
        return replies

    def _is_lost(self, reply: Message, sent: _Sent) -> bool:
        if not reply.has_error() or reply.error.code not in _GONE:
            return False
        if reply.error.code == ErrorCode.CLIENT_APP_CRASHED:
            sent.crashes += 1
            return sent.crashes <= _CRASHES
        self._activations.pop(sent.node, None)  # until the next look shows it again
        return True

    def _send_again(self, some: Iterable[_Sent]) -> None:
        """Push what was lost and whose node is there."""
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._look()
        lost = []
        for sent in some:
            now = self._activations.get(sent.node)
            died = bool(sent.flower and now and sent.activated and now != sent.activated)
            if now is not None and (died or not sent.flower):
                lost.append(sent)
        for sent in lost:
            self._resent[sent.node] += 1
            metadata = sent.message.metadata
            # The same message anew: one that was sent once has an id.
            sent.message = Message(sent.message.content, sent.node, metadata.message_type)
        self._push(lost)

    def _look(self) -> None:
        """Who is connected, and since when, if Flower tells it."""
        self._looked = time.monotonic()
        try:
            infos = [*self._grid.get_nodes()]
            self._activations = {info.node_id: str(info.last_activated_at) for info in infos}
            self._registered |= {info.node_id: info.name for info in infos if info.name}
        except httpx.HTTPError as error:
            self._failed(error)
        else:
            self._failing_since = None

    def _push(self, some: Sequence[_Sent]) -> None:
        """Hand messages to Flower; those that it does not take stay without an id."""
        if not some:
            return
        for sent in some:
            sent.flower, sent.activated = "", self._activations.get(sent.node, "")
        try:
            keys = [*self._grid.push_messages([sent.message for sent in some])]
        except httpx.HTTPError as error:
            self._failed(error)
            return
        self._failing_since = None
        for sent, key in zip(some, keys, strict=False):
            sent.flower = key or ""

    def _pull(self, keys: Sequence[str]) -> Iterable[Message]:
        """Replies; a call that failed may have swallowed some, so that all count as lost."""
        try:
            replies = list(self._grid.pull_messages(keys))
        except httpx.HTTPError as error:
            for sent in self._pending.values():
                if sent.flower in keys:
                    sent.flower = ""
            self._failed(error)
            return []
        self._failing_since = None
        return replies

    def _failed(self, error: httpx.HTTPError) -> None:
        """Take note of a failed call; too long a time of nothing but failures ends the run."""
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            log(WARNING, "The SuperLink does not answer (%s); trying again", type(error).__name__)
        if now - self._failing_since > self._patience:
            raise RunError(
                f"the SuperLink has not answered for {self._patience:g} s "
                f"({type(error).__name__}): start it again, then start the run again, which goes "
                "on with the spectral basis where it stopped"
            ) from None
