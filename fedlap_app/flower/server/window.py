"""What simulated organisations have written into their stores, which are on this machine.

A simulation keeps no secret from whoever runs it: keys follow from the seed. So its run folder may
say as much as that of training that is not sealed. A deployment has no such window.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from flwr.app import RecordDict

from fedlap_app.flower.records import Metrics, to_metrics
from fedlap_app.flower.server.outcome import StageScores
from fedlap_app.methods.base import Parameters
from fedlap_app.methods.kept import ROUNDS, training_job
from fedlap_app.methods.scores import Layout, Scores, unpack
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings
from fedlap_app.store import places
from fedlap_app.store.folders import Folder, Store


class Window:
    """The stores of the organisations of a simulation.

    Parameters
    ----------
    stores
        Store of each.
    settings
        Settings of the run.
    run
        Its number.
    """

    def __init__(self, stores: Sequence[Store], settings: Settings, run: int) -> None:
        self._stores, self._settings, self._run = stores, settings, run
        self.began_in(run)
        self._shown: set[tuple[int, int]] = set()
        self._offset = 0

    @classmethod
    def of(cls, settings: Settings, names: Sequence[str], run: int) -> "Window | None":
        """The stores where a simulation has them; None: they are elsewhere."""
        root = places.stores_at(settings.store_dir)
        if not all((root / name).is_dir() for name in names):
            return None
        return cls([Store(root / name) for name in names], settings, run)

    def began_in(self, run: int) -> None:
        """Look where the job began: a run that was stopped may have left it to this one."""
        names = (store.root.name for store in self._stores)
        folders = (store.job(training_job(run)) for store in self._stores)
        self._folders = dict(zip(names, folders, strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """Totals of rounds that were scored since the last look."""
        path = self._first.path / ROUNDS
        if not path.is_file():
            return []
        with path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        self._offset += len(content)
        found = [row for row in _parsed(content) if "round" in row]
        new = [row for row in found if (row["stage"], row["round"]) not in self._shown]
        self._shown |= {(row["stage"], row["round"]) for row in new}
        return new

    def stages(self) -> list[StageScores]:
        """Scores of the kept model after every stage."""
        about: dict[int, Mapping[str, Any]] = {}
        own: dict[int, dict[str, Scores]] = {}
        for name, folder in self._folders.items():
            path = folder.path / ROUNDS
            rows = [*_parsed(path.read_bytes())] if path.is_file() else []
            for row in rows:
                if "own" in row:
                    own.setdefault(row["stage"], {})[name] = unpack(row["own"], self._layout(row))
                if row.get("kept"):
                    about[row["stage"]] = row
        return [
            StageScores(row["best_stage"], row["best_round"], row["rounds"], own.get(stage, {}))
            for stage, row in sorted(about.items())
        ]

    def alone(self, replies: Mapping[str, RecordDict]) -> dict[str, RecordDict]:
        """Replies of organisations that trained alone, with the scores that they kept."""
        found = {}
        for name in replies:
            rows = [*_parsed((self._folders[name].path / ROUNDS).read_bytes())]
            metrics: Metrics = {
                "rounds": [float(len(row["history"])) for row in rows],
                "history": [value for row in rows for score in row["history"] for value in score],
                "scores": [value for row in rows for value in row["own"]],
            }
            found[name] = RecordDict({"metrics": to_metrics(metrics)})
        return found

    def model(self) -> Parameters | None:
        """The model that all hold."""
        folder = self._stores[0].job(training_job(self._run))
        if not folder.has(model_file.FILE):
            return None
        return ModelFile.from_bytes(folder.read(model_file.FILE), model_file.FILE).parameters

    @property
    def _first(self) -> Folder:
        return next(iter(self._folders.values()))

    def _layout(self, row: Mapping[str, Any]) -> Layout:
        return Layout.of(self._settings, int(row["classes"]))


def _parsed(content: bytes) -> Iterator[dict[str, Any]]:
    for line in content.splitlines():
        yield json.loads(line)
