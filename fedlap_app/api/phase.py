"""The phase before training alone, over the in-process grid: what it took and what it left."""

from pathlib import Path
from typing import TYPE_CHECKING

from fedlap_app import places
from fedlap_app.errors import RunError
from fedlap_app.methods.offline.bases import Bases, FinishedBasis
from fedlap_app.settings import Settings

if TYPE_CHECKING:
    from server_app.local_grid import Listener
    from server_app.offline import Progress
    from server_app.parts import Parts
    from server_app.price import OfflineOutcome


class Phase:
    """Organisations that are ready for the phase; their stores are where the settings say.

    Parameters
    ----------
    settings
        Settings of the phase.
    parts
        What the organisations hold (default: what the settings name).
    listener
        Is told of every message (default: nobody).
    """

    def __init__(
        self, settings: Settings, parts: "Parts" = (), listener: "Listener | None" = None
    ) -> None:
        from server_app.federation import gather
        from server_app.in_process import count_clients, make_grid
        from server_app.local_grid import unheard
        from server_app.member_grid import MemberGrid

        self.settings = settings.with_clients(len(parts) or count_clients(settings))
        grid = make_grid(self.settings, parts=parts, listener=listener or unheard)
        self._grid = MemberGrid(grid)
        self._members = gather(self._grid, self.settings)

    def run(self, progress: "Progress | None" = None) -> "OfflineOutcome":
        """Run the phase; `progress` is told of every round trip (default: the log)."""
        from server_app.offline import run_offline

        return run_offline(self._grid, self._members, self.settings, progress)

    def rows(self, job: str) -> dict[str, FinishedBasis]:
        """Every organisation's rows of the basis of a job, from its store."""
        root = Path(self.settings.store_dir) if self.settings.store_dir else places.stores_dir()
        found = {}
        for store in sorted(root.iterdir()):
            bases = Bases(store / "basis")
            for facts in bases.facts():
                if facts.job == job:
                    found[store.name] = bases.load(facts)
        if len(found) != self.settings.clients:
            raise RunError(
                f"{len(found)} of {self.settings.clients} stores hold the basis: run it again"
            )
        return found
