"""What this app asks of a grid beyond Flower's own interface, with answers for grids without.

Grids wrap each other: the one that knows the organisations stands on one that loses no replies, and
that one on Flower's. A grid declares here what it can do; nobody looks for abilities by name.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from flwr.app import Message, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata
from flwr.serverapp import Grid
from flwr.supercore.run import Run


def addressed(
    message: Message,
    *,
    message_id: str | None = None,
    reply_to: str | None = None,
    source: int | None = None,
    run_id: int | None = None,
) -> Message:
    """The same message with other facts on its envelope, which Flower sets when it is made."""
    now = message.metadata
    metadata = Metadata(
        run_id=now.run_id if run_id is None else run_id,
        message_id=now.message_id if message_id is None else message_id,
        src_node_id=now.src_node_id if source is None else source,
        dst_node_id=now.dst_node_id,
        reply_to_message_id=now.reply_to_message_id if reply_to is None else reply_to,
        group_id=now.group_id,
        created_at=now.created_at,
        ttl=now.ttl,
        message_type=now.message_type,
        src_task_id=now.src_task_id,
        dst_task_id=now.dst_task_id,
    )
    if message.has_error():
        return make_message(metadata, error=message.error)
    return make_message(metadata, content=message.content)


class Carrier(Grid):
    """A grid that says what else it can do."""

    def turn(self, names: Sequence[str], limit: float) -> AbstractContextManager[None]:
        """Hold the offline phase of these organisations, where others could disturb it."""
        return nullcontext()

    def resent(self) -> Mapping[int, int]:
        """How many messages were sent again to each node."""
        return {}

    def registered_names(self) -> dict[int, str]:
        """Names under which connected nodes were registered, where they have names."""
        return {}

    def is_away(self, node: int) -> bool:
        """Whether a node is known not to be connected."""
        return False


class WrappedGrid(Carrier):
    """Leaves the run, the making of messages and its abilities to the wrapped grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._carrier = grid if isinstance(grid, Carrier) else None

    def set_run(self, run: Run) -> None:
        """Set the run of the wrapped grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """Run of the wrapped grid."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Create a message as the wrapped grid does."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def turn(self, names: Sequence[str], limit: float) -> AbstractContextManager[None]:
        """Turn of the wrapped grid."""
        return self._carrier.turn(names, limit) if self._carrier else super().turn(names, limit)

    def resent(self) -> Mapping[int, int]:
        """Counts of the wrapped grid."""
        return self._carrier.resent() if self._carrier else super().resent()

    def registered_names(self) -> dict[int, str]:
        """Names that the wrapped grid knows."""
        return self._carrier.registered_names() if self._carrier else super().registered_names()

    def is_away(self, node: int) -> bool:
        """Whether the wrapped grid knows that a node is away."""
        return self._carrier.is_away(node) if self._carrier else super().is_away(node)
