"""Whole runs in this process, without Flower's own processes: what `fedlap train` does."""

import resource
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.flower.client.organisation import hand_over
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    Listener,
    new_run_id,
    partition_configs,
    unheard,
)
from fedlap_app.flower.grids.workers import WorkerGrid
from fedlap_app.flower.server.central import run_central
from fedlap_app.flower.server.observer import Observer
from fedlap_app.flower.server.parts import Parts
from fedlap_app.flower.server.run import run
from fedlap_app.flower.steps import unsealed_at_home
from fedlap_app.graphs.folder import federation_folders
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.store import places

# Flower's own simulation has two nodes unless told otherwise.
DEFAULT_CLIENTS = 2
_FILES, _FILES_EACH = 256, 32  # that a process keeps open, and of every organisation in it


def run_in_process(
    settings: Settings, observer: Observer, run_id: int | None = None, parts: Parts = ()
) -> dict[str, Any]:
    """Run the settings' method on the in-process grid and return the summary.

    Parameters
    ----------
    settings
        Settings of the run.
    observer
        Is told of every round.
    run_id
        Number of the run (default: a new one).
    parts
        What the organisations hold (default: what the settings name).
    """
    run_id = run_id or new_run_id()
    settings = unsealed_at_home(settings)
    settings = settings.with_clients(len(parts) or count_clients(settings))
    if settings.store_dir:
        places.folder_at(settings.store_dir, "store-dir")  # here its fault can be told in full
    if method_class(settings.method).pooled:
        return run_central(settings, run_id, observer, parts)
    grid = make_grid(settings, run_id, parts)
    try:
        return run(grid, settings, observer)
    finally:
        grid.close()


def make_grid(
    settings: Settings, run_id: int | None = None, parts: Parts = (), listener: Listener = unheard
) -> InProcessGrid:
    """An in-process grid for the settings, whose `clients` is set."""
    from fedlap_app.flower.client.app import app

    _allow_files(_FILES + _FILES_EACH * settings.clients)
    named: dict[str, Any] = {
        "run_id": run_id or new_run_id(),
        "organisations": [hand_over(part.subgraph, settings, part.folder, parts) for part in parts],
    }
    known = (app, partition_configs(settings.clients), settings.to_config())
    if settings.processes > 1 and listener is unheard:  # else messages are heard in their order
        return WorkerGrid(*known, processes=settings.processes, **named)
    return InProcessGrid(*known, listener=listener, **named)


def _allow_files(count: int) -> None:
    """Let this process open so many files, as far as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def count_clients(settings: Settings) -> int:
    """How many organisations take part when nobody else says so."""
    if not settings.data:
        return settings.clients or DEFAULT_CLIENTS
    count = len(federation_folders(Path(settings.data)))
    if settings.clients not in (0, count):
        raise DataError(
            f"{settings.data} holds {count} organisation folders but clients = "
            f"{settings.clients}: leave clients out"
        )
    return count
