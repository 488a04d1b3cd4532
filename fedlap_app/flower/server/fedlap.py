"""The method `fedlap`: the members name their rows, then learn them beside the global model."""

from collections.abc import Sequence
from logging import INFO, WARNING

from flwr.common.logger import log

from fedlap_app.flower.grids.member_grid import Member, MemberGrid
from fedlap_app.flower.server.averaging import run_fedavg
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.offline import name_rows
from fedlap_app.flower.server.outcome import Outcome
from fedlap_app.flower.server.rows import SharedRows
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.settings import Settings


def run_fedlap(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    folder: RunFolder,
    observer: Observer,
    basis: str,
) -> Outcome:
    """Agree on names, then train; the rows stay with the members and in this process' memory."""
    job, names = name_rows(grid, members, settings)
    rows = SharedRows(job, names, width=settings.structure_width, seed=settings.seed)
    log(INFO, "Learned rows: %d, of which %d have copies", rows.count, rows.shared)
    log(
        WARNING,
        "The server sees, under names that say nothing, the structure features of all nodes and "
        "which organisations hold a copy of each: hide-topology has no effect on method fedlap.",
    )
    return run_fedavg(grid, members, settings, folder, observer, basis, rows)
