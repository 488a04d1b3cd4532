"""Whole runs in this process, without Flower's own processes: what `fedlap train` does."""

from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.folder import federation_folders
from fedlap_app.settings import Settings
from server_app.central import run_central
from server_app.local_grid import InProcessGrid, new_run_id, partition_configs
from server_app.observer import Observer
from server_app.run import run

# Flower's own simulation has two nodes unless told otherwise.
DEFAULT_CLIENTS = 2


def run_in_process(
    settings: Settings, observer: Observer, run_id: int | None = None
) -> dict[str, Any]:
    """Run the settings' method on the in-process grid and return the summary."""
    run_id = run_id or new_run_id()
    settings = settings.with_clients(count_clients(settings))
    if settings.store_dir:
        _make_folder(Path(settings.store_dir))
    if settings.method == "central":
        return run_central(settings, run_id, observer)
    return run(make_grid(settings, run_id), settings, observer)


def make_grid(settings: Settings, run_id: int | None = None) -> InProcessGrid:
    """An in-process grid for the settings, whose `clients` is set."""
    from client_app.app import app

    configs = partition_configs(settings.clients)
    return InProcessGrid(app, configs, settings.to_config(), run_id=run_id or new_run_id())


def _make_folder(path: Path) -> None:
    """Make the folder of the stores; in one process its fault can be told in full."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"store-dir = '{path}' cannot be a folder of stores ({error.strerror}): name a folder "
            "that can be written"
        ) from None


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
