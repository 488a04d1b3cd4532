"""A grid around another one, for those that change how messages travel."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.run import Run


class WrappedGrid(Grid):
    """Leaves the run and the making of messages to the wrapped grid."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def set_run(self, run: Run) -> None:
        """Set the run of the wrapped grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Run:
        """Run of the wrapped grid."""
        return self._grid.run

    def turn(self, names: Sequence[str], limit: float) -> AbstractContextManager[None]:
        """Hold the offline phase of these organisations, where others could disturb it."""
        turn: Callable[[Sequence[str], float], AbstractContextManager[None]] | None
        turn = getattr(self._grid, "turn", None)
        return turn(names, limit) if turn else nullcontext()

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
