"""Where the trials of tuning are trained: in this process, or as runs of Flower."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fedlap_app.api.organisations import MEMORY, Organisations
from fedlap_app.api.training import conduct
from fedlap_app.api.workplace import quietly
from fedlap_app.errors import DataError, RunError
from fedlap_app.flower.server.run_folder import RunFolder, root_of
from fedlap_app.flower.submission import Flower
from fedlap_app.settings import Settings
from fedlap_app.store import names, places

COMPLETED = "finished:completed"


class Trained(NamedTuple):
    """What a run left: its summary, and the price of its basis, if it has one."""

    summary: Mapping[str, Any]
    offline: Mapping[str, Any] | None


class Trainer(Protocol):
    """Who trains the trials."""

    @property
    def about(self) -> list[str]:
        """On what it trains, which all trials of a table must have in common."""

    @property
    def clients(self) -> int:
        """How many organisations; 0: not known before the first trial."""

    def train(self, settings: Settings, folder: Path) -> Trained:
        """Train once; `folder` is that of the trials."""


class Here:
    """Trainings on this machine, with stores of their own, which stay from trial to trial.

    Parameters
    ----------
    orgs
        What is trained on.
    processes
        How many the organisations of a trial share, as the setting.
    """

    def __init__(self, orgs: Organisations, processes: int = 0) -> None:
        self.orgs, self.processes = orgs, processes

    @property
    def about(self) -> list[str]:
        """What the organisations hold."""
        return [part.fingerprint() for part in self.orgs]

    @property
    def clients(self) -> int:
        """How many they are."""
        return len(self.orgs)

    def train(self, settings: Settings, folder: Path) -> Trained:
        """Train with the organisations that are here."""
        orgs = self.orgs if settings.data == MEMORY else None
        settings = replace(settings, run_dir="", store_dir="", processes=self.processes)
        with quietly(), places.home_at(folder / "home"):
            run = conduct(settings, orgs=orgs)
        return Trained(run.summary, run.offline)


class Runs:
    """A run of Flower for every trial: the organisations keep its basis, and consent to each run.

    Parameters
    ----------
    flower
        A SuperLink, whose ServerApp writes its run folders on this machine.
    nodes
        Organisations of a simulation; 0: those that the SuperLink has.
    hours
        How long to wait for a run.
    where
        Address of the SuperLink; empty: a simulation.
    """

    def __init__(self, flower: Flower, nodes: int, hours: float, where: str = "") -> None:
        self.flower, self.nodes, self.hours, self.where = flower, nodes, hours, where
        self.clients = nodes

    @property
    def about(self) -> list[str]:
        """Through which SuperLink."""
        return [self.where, str(self.nodes)]

    def train(self, settings: Settings, folder: Path) -> Trained:
        """Submit a run, wait for its end, and read what the server may know of it."""
        usual = Settings().to_config()
        values = {k: v for k, v in settings.to_config().items() if usual.get(k) != v}
        run_id = self.flower.submit({**values, "clients": self.nodes}, self.nodes)
        status = self._wait(run_id)
        found = RunFolder.find(run_id, root_of(settings))
        if status != COMPLETED:
            raise RunError(f"run {run_id} of a trial failed ({status}): {self._reason(found)}")
        if found is None:
            raise DataError(
                f"run {run_id} left no run folder in {root_of(settings)}: tune on the machine of "
                "the ServerApp, and name its run-dir"
            )
        summary = found.read_json(names.SUMMARY)
        self.clients = summary["clients"]
        if summary["score"]["val"] is None:
            raise DataError(
                f"run {run_id} tells no validation score, so that there is nothing to choose by: "
                "the organisations publish none, or have too few validation nodes"
            )
        priced = (found.path / names.PRICE).exists()
        return Trained(summary, found.read_json(names.PRICE) if priced else None)

    def _wait(self, run_id: int) -> str:
        try:
            return self.flower.wait(run_id, 3600 * self.hours)
        except KeyboardInterrupt:
            self.flower.cancel(run_id)
            raise

    def _reason(self, folder: RunFolder | None) -> str:
        if folder is not None and (folder.path / names.ERROR).exists():
            return str(folder.read_json(names.ERROR)["error"])
        return self.flower.where_to_look()
