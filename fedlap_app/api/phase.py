"""The phase before training alone, over the in-process grid: what it took and what it left."""

from typing import TYPE_CHECKING

from fedlap_app.errors import RunError
from fedlap_app.settings import Settings
from fedlap_app.store import places
from fedlap_app.sums.job.bases import Bases, FinishedBasis
from fedlap_app.sums.programs import Krylov

if TYPE_CHECKING:
    from fedlap_app.flower.grids.local_grid import Listener
    from fedlap_app.flower.server.offline import Progress
    from fedlap_app.flower.server.parts import Parts
    from fedlap_app.flower.server.price import OfflineOutcome


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
        from fedlap_app.flower.grids.in_process import count_clients, make_grid
        from fedlap_app.flower.grids.local_grid import unheard
        from fedlap_app.flower.grids.member_grid import MemberGrid
        from fedlap_app.flower.server.federation import gather

        self.settings = settings.with_clients(len(parts) or count_clients(settings))
        grid = make_grid(self.settings, parts=parts, listener=listener or unheard)
        self._grid = MemberGrid(grid)
        self._members = gather(self._grid, self.settings)

    def run(self, progress: "Progress | None" = None) -> "OfflineOutcome":
        """Run the phase; `progress` is told of every round trip (default: the log)."""
        from fedlap_app.flower.server.offline import run_offline

        return run_offline(self._grid, self._members, self.settings, progress=progress)

    def rows(self, job: str) -> dict[str, FinishedBasis]:
        """Every organisation's rows of the basis of a job, from its store."""
        found = {}
        for store in sorted(places.stores_at(self.settings.store_dir).iterdir()):
            bases = Bases(store / Krylov.kept_as)
            for facts in bases.facts():
                if facts.job == job:
                    found[store.name] = bases.load(facts)
        if len(found) != self.settings.clients:
            raise RunError(
                f"{len(found)} of {self.settings.clients} stores hold the basis: run it again"
            )
        return found
