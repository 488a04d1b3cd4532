"""Small runs whose messages are mutated: every back end, every type of message."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import RecordDict

from client_app.app import app
from fedlap_app.flower.client import organisation as known
from fedlap_app.flower.grids.local_grid import InProcessGrid, partition_configs
from fedlap_app.flower.server.run import run
from fedlap_app.methods.kept import training_job
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings
from fedlap_app.store.folders import Store
from fedlap_app.sums.job.live import forget as forget_live

RUN = 7_000_001
FIRST_NODE = 101
SMALL = replace(
    Settings(), method="fedlap+", spectral=True, accounts=200, clients=3, rounds=2, local_epochs=1,
    hidden="8", step_timeout=60.0, vectors=4, rank=0, block=2, backend="mask", operator="sym",
    column_weights="none", fusion="sum", model="decoupled", standardise="none", self_training=1,
    patience=0, training_backend="mask",
)  # fmt: skip
KINDS: Mapping[str, Mapping[str, Any]] = {
    "mask": {"publish_model": True},
    "plain": {"backend": "plain", "training_backend": "plain", "optimizer_state": "keep"},
    "ckks": {"backend": "ckks", "message_mb": 0.02, "self_training": 0, "rounds": 1},
    "alone": {"method": "local"},
    "sums": {"method": "fedgcn", "standardise": "together", "fusion": "validation"},
    "personal": {"method": "fedpub", "training_backend": "plain"},
    "alike": {"method": "fedgta", "training_backend": "plain"},
    "taught": {"method": "fedtad", "training_backend": "plain"},
    "mended": {"method": "fedsage+", "training_backend": "plain", "generator_width": 4},
    "rows": {
        "method": "fedlap",
        "training_backend": "plain",
        "structure_width": 4,
        "spectral": False,
    },
    "walks": {"method": "fedstruct", "structure_width": 4, "walk_steps": 2, "walk_entries": 5},
    "narrow": {"spectral": False, "method": "fedavg", "training_ring": 16, "largest_weight": 50},
}


class Quiet:
    """An observer that says nothing."""

    def step_done(self, number: int, steps: int) -> None:
        """Take no note of a step."""

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Take no note of a round."""


@dataclass(frozen=True)
class Recorded:
    """One message of a run, and its reply."""

    node: int
    kind: str
    sent: RecordDict
    answered: RecordDict


def settings_of(kind: str, folder: Path) -> Settings:
    """Settings of a run whose files are in a folder."""
    places = {"store_dir": str(folder / "stores"), "run_dir": str(folder / "runs")}
    return replace(SMALL, **places, **KINDS[kind])


def forget() -> None:
    """What the end of a client's process forgets."""
    forget_live()
    known._organisations.clear()


def play(settings: Settings, grid: InProcessGrid) -> dict[str, Any]:
    """Run it to its end, as new processes."""
    forget()
    with silence():
        return run(grid, settings, Quiet())


def recorded(kind: str, folder: Path) -> tuple[list[Recorded], dict[str, Any]]:
    """An honest run: its messages, and what it ends with."""
    seen: list[Recorded] = []
    settings = settings_of(kind, folder)
    grid = InProcessGrid(
        app,
        partition_configs(settings.clients),
        settings.to_config(),
        run_id=RUN,
        listener=lambda *about: seen.append(Recorded(*about)),
    )
    summary = play(settings, grid)
    return seen, ending(settings, summary)


def ending(settings: Settings, summary: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same to the last bit, whatever came between."""
    found = {key: repr(summary[key]) for key in ("accuracy", "loss", "macro_f1", "client_accuracy")}
    for place in sorted(Path(settings.store_dir).iterdir()):
        folder = Store(place).job(training_job(RUN))
        if folder.has(model_file.FILE):
            model = ModelFile.from_bytes(folder.read(model_file.FILE), model_file.FILE)
            for name, value in model.parameters.items():
                found[f"{place.name} {name}"] = np.asarray(value).tobytes()
    return found


@contextmanager
def silence() -> Iterator[None]:
    """No lines in the log meanwhile."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class Snapshot:
    """A folder of small files as it is now."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, _contents(folder)

    def restore(self) -> bool:
        """Put it back; whether anything had to be."""
        now = _contents(self._folder)
        for place in now.keys() - self._files.keys():
            place.unlink()
        lost = {place: data for place, data in self._files.items() if now.get(place) != data}
        for place, content in lost.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        return now != self._files


def _contents(folder: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
