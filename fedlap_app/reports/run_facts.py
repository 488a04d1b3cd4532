"""What the files of a run folder say, as far as the server may know it.

Names are taken one by one: what another part of the program adds to a file of the run, or what a
release before this one wrote there (scores of single organisations), does not reach the page.
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError, FedLapError
from fedlap_app.flower.server.run_folder import offline_file
from fedlap_app.methods.scores import SPLITS
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import names
from fedlap_app.sums.programs import PROGRAMS

PLACES = ("run-dir", "store-dir", "data")
_SCORES = ("accuracy", "loss", "macro_f1", "score")
_ROUND = tuple(f"{split}_{kind}" for split in SPLITS for kind in ("accuracy", "loss", "macro_f1"))
_STAGE = ("accuracy", "rounds", "best_stage", "best_round")
_OFFLINE = ("round_trips", "handshake", "seconds", "secure_seconds", "client_seconds", "reused",
            "resumed", "slots", "up", "down")  # fmt: skip
_COMPARED = ("method", "score_mean", "score_std", "score_low", "score_high", "seeds",
             "bytes_up_per_client", "bytes_down_per_client", "seconds", "vectors",
             "worst_case_auc")  # fmt: skip
_GAINS = ("method", "minus", "gain_mean", "gain_low", "gain_high")


@dataclass(frozen=True)
class RunFacts:
    """One run; what a file does not say is empty.

    Attributes
    ----------
    name, settings
        Name of the folder, and all settings.
    scores
        Totals over all organisations, by kind and split.
    rounds, stages
        Totals of every round and after every stage.
    best_round, best_stage
        Of the model that is kept.
    up, down
        Bytes from and to each organisation.
    offline, phases
        Price of the spectral basis, and of all sealed sums before training by program.
    seconds, versions
        By phase, and by package.
    comparison
        Methods beside it: means and prices, of no single organisation.
    """

    name: str
    settings: Settings
    scores: Mapping[str, Mapping[str, float | None]]
    rounds: tuple[Mapping[str, Any], ...]
    stages: tuple[Mapping[str, Any], ...]
    best_round: int | None
    best_stage: int | None
    up: Mapping[str, int]
    down: Mapping[str, int]
    offline: Mapping[str, Any]
    phases: Mapping[str, Mapping[str, Any]]
    seconds: Mapping[str, float]
    versions: Mapping[str, str]
    comparison: Mapping[str, Any]

    @property
    def metric(self) -> str:
        """What a score is."""
        return self.settings.metric

    @property
    def test(self) -> float | None:
        """Score on all test nodes."""
        return self.scores.get("score", {}).get("test")

    @property
    def validation(self) -> float | None:
        """Score on all validation nodes."""
        return self.scores.get("score", {}).get("val")

    @property
    def vectors(self) -> int:
        """Vectors exchanged; a basis that is reused was exchanged by an earlier run."""
        from fedlap_app.sums.program import Extent

        return self.settings.krylov.columns(Extent()) if self.offline else 0

    def before(self, way: str, name: str) -> int:
        """Bytes of an organisation before training; `way` is up or down."""
        return sum(int(phase.get(way, {}).get(name, 0)) for phase in self.phases.values())

    @property
    def count(self) -> int:
        """Organisations."""
        return len(self.up) or self.settings.clients

    @classmethod
    def read(cls, folder: Path) -> "RunFacts":
        """The facts of a run folder."""
        if not (folder / names.CONFIG).is_file():
            raise DataError(f"{folder} is no run folder: it has no {names.CONFIG}")
        if not (folder / names.SUMMARY).is_file():
            raise DataError(
                f"{folder} holds no finished run, so there is nothing to report yet: see "
                "`fedlap status`"
            )
        summary = _json(folder / names.SUMMARY)
        try:
            return cls(
                name=folder.name,
                settings=parse_settings(_json(folder / names.CONFIG)),
                scores={kind: _splits(summary.get(kind, {})) for kind in _SCORES},
                rounds=tuple(read_rounds(folder)),
                stages=tuple(_stage(each) for each in summary.get("stages", [])),
                best_round=summary.get("best_round"),
                best_stage=summary.get("best_stage"),
                up=_numbers(summary.get("bytes_up", {})),
                down=_numbers(summary.get("bytes_down", {})),
                offline=_basis(folder),
                phases=_phases(folder),
                seconds=_numbers(summary.get("seconds", {})),
                versions={str(k): str(v) for k, v in summary.get("versions", {}).items()},
                comparison=compared(_json(folder / names.COMPARISON, missing={})),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, FedLapError):
                raise
            raise DataError(
                f"{folder} cannot be read ({type(error).__name__}): were its files changed?"
            ) from None


def compared(report: Mapping[str, Any]) -> dict[str, Any]:
    """Of a comparison: methods and their differences, without single organisations."""
    if not report:
        return {}
    head = _some(report, ("dataset", "partition", "clients", "score", "one_seed"))
    rows = [_some(row, _COMPARED) for row in report["rows"]]
    return {**head, "rows": rows, "differences": [_some(d, _GAINS) for d in report["differences"]]}


def read_settings(folder: Path) -> dict[str, Any]:
    """Settings of a run but for places on a machine, which are its owner's own business."""
    if not (folder / names.CONFIG).is_file():
        raise DataError(f"{folder} is no run folder: it has no {names.CONFIG}")
    return {key: value for key, value in _json(folder / names.CONFIG).items() if key not in PLACES}


def read_comparison(folder: Path) -> Mapping[str, Any]:
    """The file of `fedlap compare`; empty when the folder has none."""
    return _json(folder / names.COMPARISON, missing={})


def _basis(folder: Path) -> dict[str, Any]:
    """Price of the spectral basis; sizes of one that is reused stand in the run that made it."""
    found = _json(folder / names.PRICE, missing={})
    if found.get("reused") and not found.get("slots"):
        for file in sorted(folder.parent.glob(f"*/{names.PRICE}")):
            with contextlib.suppress(DataError):  # of a run that nobody asked for
                other = _json(file)
                if other.get("job") == found.get("job") and other.get("slots"):
                    return _some({**found, "slots": other["slots"]}, _OFFLINE)
    return _some(found, _OFFLINE)


def _phases(folder: Path) -> dict[str, dict[str, Any]]:
    """Facts of all sealed sums before training."""
    files = {name: folder / offline_file(name) for name in (*PROGRAMS, "training")}
    return {name: _some(_json(file), _OFFLINE) for name, file in files.items() if file.is_file()}


def _some(found: Mapping[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {name: found[name] for name in keys if name in found}


def _splits(found: Mapping[str, Any]) -> dict[str, float | None]:
    return {split: found.get(split) for split in SPLITS}


def _numbers(found: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in found.items() if isinstance(value, int | float)}


def _stage(found: Mapping[str, Any]) -> dict[str, Any]:
    return {**_some(found, _STAGE), "accuracy": _splits(found.get("accuracy", {}))}


def read_rounds(folder: Path) -> list[dict[str, Any]]:
    """Totals of the rounds so far."""
    path = folder / names.METRICS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [_some(json.loads(line), ("stage", "round", "seconds", *_ROUND)) for line in lines]


def _json(path: Path, *, missing: Mapping[str, Any] | None = None) -> dict[str, Any]:
    if missing is not None and not path.is_file():
        return dict(missing)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise DataError(f"{path} cannot be read: is it damaged?") from None
    if not isinstance(found, dict):
        raise DataError(f"{path} is damaged: it holds no JSON object")
    return found
