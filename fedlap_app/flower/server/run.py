"""A whole run on any grid: gather the organisations, train, write the run folder."""

import contextlib
from collections.abc import Sequence
from logging import INFO, WARNING
from typing import Any

from flwr.common.logger import log
from flwr.serverapp import Grid

from fedlap_app.errors import ConfigError, FedLapError
from fedlap_app.flower.grids.member_grid import Member, MemberGrid, extent_of
from fedlap_app.flower.grids.polling import PollingGrid
from fedlap_app.flower.server.alone import train_alone
from fedlap_app.flower.server.averaging import train_together
from fedlap_app.flower.server.federation import gather, reads_together
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.offline import LogProgress, run_offline
from fedlap_app.flower.server.price import OfflineOutcome
from fedlap_app.flower.server.run_folder import RunFolder, offline_file
from fedlap_app.flower.server.sealed import train_sealed
from fedlap_app.flower.server.status import Board, BoardObserver
from fedlap_app.flower.server.summary import Clock, write_summary
from fedlap_app.flower.steps import require_sealable
from fedlap_app.methods.registry import distributed, method_class
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.sums.programs import FeatureMoments


def run(grid: Grid, settings: Settings, observer: Observer) -> dict[str, Any]:
    """Run the method of the settings and return the summary, which is also on disk."""
    folder = RunFolder.create(settings, grid.run.run_id)
    folder.write_json(names.CONFIG, settings.to_config())
    log(INFO, "Run folder: %s", folder.path)
    patient = MemberGrid(PollingGrid(grid, settings.step_timeout))
    board = Board(folder, patient)
    try:
        summary = _phases(patient, settings, folder, observer, board)
        board.end("finished")
    except BaseException as error:
        _note_end(folder, board, error)
        raise
    if summary["best_round"] is not None:
        where = summary["best_round"], summary["best_stage"], 100 * summary["accuracy"]["val"]
        log(INFO, "Best round: %s of stage %s (validation %.2f %%)", *where)
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
        folder.write_json(names.ERROR, {"error": reason})
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
    method = method_class(settings.method).of(settings)
    if method.pooled:
        raise ConfigError(
            f"method = '{method.name}' needs all data in one place: it runs under `fedlap train` "
            f"only; here choose one of {', '.join(distributed())}"
        )
    require_sealable(method)
    board.training = settings.training_backend if method.exchanges else ""
    if settings.promise:  # a missing package is told before anybody is asked
        settings.promise.of(settings.rounds)
    members = gather(grid, settings)
    clock.lap("gather")
    if method.weakness:
        log(WARNING, "%s", method.weakness)
    told = BoardObserver(board, observer)
    read = (FeatureMoments.name,) if reads_together(members, method) else ()
    found = {
        program: _offline(grid, members, settings, program, board, told, folder)
        for program in (*settings.needed_programs, *read)
    }
    own = {program: found[program] for program in (*read, *method.needs(settings))}
    board.phase("training", "rounds", settings.rounds * (settings.self_training + 1))
    if method.exchanges and settings.sealed:
        outcome = train_sealed(grid, members, method, folder, told, own)
    elif method.exchanges:
        outcome = train_together(grid, members, method, folder, told, own)
    else:
        outcome = train_alone(grid, members, method, folder, told)
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


def _offline(
    grid: MemberGrid,
    members: Sequence[Member],
    settings: Settings,
    program: str,
    board: Board,
    told: BoardObserver,
    folder: RunFolder,
) -> OfflineOutcome:
    """Run a program before training; the board and the log follow."""
    board.phase("offline", "steps", settings.spec_of(program).rounds(extent_of(members)))
    log_progress = LogProgress()

    def progress(number: int, rounds: int) -> None:
        told.step_done(number, rounds)
        log_progress(number, rounds)

    outcome = run_offline(grid, members, settings, program, progress=progress)
    folder.write_json(offline_file(program), outcome.to_json())
    return outcome
