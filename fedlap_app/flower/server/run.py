"""A whole run on any grid: gather the organisations, train, write the run folder."""

import contextlib
from logging import INFO
from typing import Any

from flwr.common.logger import log
from flwr.serverapp import Grid

from fedlap_app.errors import ConfigError, FedLapError
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.grids.polling import PollingGrid
from fedlap_app.flower.server.alone import run_local
from fedlap_app.flower.server.averaging import run_fedavg
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.server.fedlap import run_fedlap
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.offline import LogProgress, run_offline
from fedlap_app.flower.server.run_folder import CONFIG, OFFLINE, RunFolder
from fedlap_app.flower.server.status import Board, BoardObserver
from fedlap_app.flower.server.summary import Clock, write_summary
from fedlap_app.settings import Settings
from fedlap_app.sums.program import Extent

_METHODS = {
    "fedlap+": run_fedavg,
    "fedlap": run_fedlap,
    "fedavg": run_fedavg,
    "local": run_local,
}


def run(grid: Grid, settings: Settings, observer: Observer) -> dict[str, Any]:
    """Run the method of the settings and return the summary, which is also on disk."""
    folder = RunFolder.create(settings, grid.run.run_id)
    folder.write_json(CONFIG, settings.to_config())
    log(INFO, "Run folder: %s", folder.path)
    patient = MemberGrid(PollingGrid(grid, settings.step_timeout))
    board = Board(folder, patient)
    try:
        summary = _phases(patient, settings, folder, observer, board)
        board.end("finished")
    except BaseException as error:
        _note_end(folder, board, error)
        raise
    log(INFO, "Test accuracy: %.2f %%", 100 * summary["accuracy"]["test"])
    log(INFO, "Run folder: %s", folder.path)
    return summary


def _note_end(folder: RunFolder, board: Board, error: BaseException) -> None:
    """Leave the reason in the run folder; a full disk must not hide it from the caller."""
    stopped = isinstance(error, KeyboardInterrupt | SystemExit)
    says = str(error) if isinstance(error, FedLapError) else type(error).__name__
    reason = "stopped from outside" if stopped else says
    with contextlib.suppress(OSError):
        if folder.finished:  # the signal came after the last file of the run
            board.end("finished")
            return
        folder.write_json("error.json", {"error": reason})
        board.end("stopped" if stopped else "failed", reason)


def _phases(
    grid: MemberGrid,
    settings: Settings,
    folder: RunFolder,
    observer: Observer,
    board: Board,
) -> dict[str, Any]:
    """Gather the organisations, compute the basis if asked for, train, write the summary."""
    clock = Clock()
    if settings.method not in _METHODS:
        raise ConfigError(
            f"method = '{settings.method}' needs all data in one place: it runs under "
            f"`fedlap train` only; here choose one of {', '.join(_METHODS)}"
        )
    members = gather(grid, settings)
    clock.lap("gather")
    told = BoardObserver(board, observer)
    basis = ""
    if settings.needs_basis:
        extent = Extent(features=members[0].features)
        board.phase("offline", "steps", settings.offline_spec.rounds(extent))
        log_progress = LogProgress()

        def progress(number: int, rounds: int) -> None:
            told.step_done(number, rounds)
            log_progress(number, rounds)

        phase = run_offline(grid, members, settings, progress=progress)
        folder.write_json(OFFLINE, phase.to_json())
        basis = phase.job if settings.method == "fedlap+" else ""
        clock.lap("offline")
    board.phase("training", "rounds", settings.rounds * (settings.self_training + 1))
    outcome = _METHODS[settings.method](grid, members, settings, folder, told, basis)
    clock.lap("train")
    return write_summary(
        folder,
        settings,
        outcome,
        run_id=grid.run.run_id,
        schema=members[0].schema,
        clock=clock,
        traffic=grid.traffic,
        absences=grid.absences,
    )
