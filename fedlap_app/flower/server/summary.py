"""The summary of a run: scores, traffic, seconds, versions."""

import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fedlap_app.flower.grids.member_grid import Traffic
from fedlap_app.flower.server.outcome import Outcome
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.version import VERSION

_PACKAGES = ("flwr", "torch", "numpy", "scipy", "tenseal")


class Clock:
    """Seconds spent in each phase of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = time.perf_counter()

    def lap(self, phase: str) -> None:
        """Book the time since the last lap under `phase`."""
        now = time.perf_counter()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._started
        self._started = now


def write_summary(
    folder: RunFolder,
    settings: Settings,
    outcome: Outcome,
    *,
    run_id: int,
    schema: str,
    clock: Clock,
    traffic: Mapping[str, Traffic] | None = None,
    absences: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """Write the model and ``summary.json``; return the summary."""
    if outcome.parameters is not None:
        model = ModelFile(
            outcome.parameters,
            settings.to_config(),
            schema,
            outcome.basis,
            features=outcome.features,
            encoding=outcome.encoding,
        )
        folder.write_model(model)
    traffic = traffic or {}
    summary = {
        "run_id": run_id,
        "run_folder": str(folder.path),
        "method": settings.method,
        "dataset": settings.data or settings.dataset,
        "clients": settings.clients or len(outcome.clients) or len(traffic),
        "seed": settings.seed,
        **outcome.summary(settings.metric),
        **_privacy(settings, outcome.releases),
        "bytes_up": {name: count.up for name, count in traffic.items()},
        "bytes_down": {name: count.down for name, count in traffic.items()},
        "absences": dict(absences or {}),
        "seconds": clock.seconds,
        "versions": versions(),
    }
    folder.write_json(names.SUMMARY, summary)
    return summary


def _privacy(settings: Settings, releases: int) -> dict[str, Any]:
    """What noise on updates promises, where there is any."""
    return {"privacy": settings.promise.of(releases)} if settings.promise else {}


def versions() -> dict[str, str]:
    """Versions of what decides a result."""
    found = {"fedlap": VERSION, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
