"""What this app asks of a grid beyond Flower's own interface, with answers for grids without.

Grids wrap each other: the one that knows the organisations stands on one that loses no replies, and
that one on Flower's. A grid declares here what it can do; nobody looks for abilities by name.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run


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
