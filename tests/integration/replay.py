"""The same run in one process: same data, same secrets, same job."""

import math
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id
from fedlap_app.flower.server.run import run
from fedlap_app.knobs import Value
from fedlap_app.settings import parse_settings
from fedlap_app.sums.job.secrets import Secrets
from tests.integration.federation import Federation, Outcome


class Silent:
    """An observer that says nothing."""

    def step_done(self, number, steps):
        """Nothing to show."""

    def round_done(self, number: int, rounds: int, totals: dict[str, float]) -> None:
        """Nothing is said."""


def replay(
    federation: Federation, outcome: Outcome, config: dict[str, Value], folder: Path
) -> dict[str, Any]:
    """Summary of a run in this process that begins with the start vectors of a deployed one.

    The organisations' start vectors follow from their secrets and from the job, whose id is drawn
    anew in every run: this run is told the id of the deployed one.
    """
    configs = []
    for name in federation.names:
        data = folder / name / "data"
        skipped = shutil.ignore_patterns("basis-*", "offline-*", "training*", "jobs", "lock")
        shutil.copytree(federation.folder(name) / "data", data, ignore=skipped)
        file = str(federation.folder(name) / "federation.toml")
        configs.append({"data-dir": str(data), "federation": file})
    settings = parse_settings(
        {"clients": len(federation.names), "run-dir": str(folder / "runs"), **config}
    )
    grid = InProcessGrid(app, configs, settings.to_config(), run_id=new_run_id())
    job = outcome.offline["job"] if settings.needs_basis else ""
    with patch.object(Secrets, "start_label", lambda self, own: job):
        return run(grid, settings, Silent())


def assert_same_scores(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Whether two summaries of sealed training agree in all that they tell."""
    for split, value in theirs["accuracy"].items():
        own = ours["accuracy"][split]
        known = own is not None
        assert known == math.isfinite(value)
        assert not known or abs(own - value) <= 1e-12, (split, own, value)
    for mine, other in zip(ours["stages"], theirs["stages"], strict=True):
        assert mine["rounds"] == other["rounds"]
