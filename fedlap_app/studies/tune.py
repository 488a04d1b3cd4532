"""Federated model choice under a budget: by validation scores that organisations sum, never test.

All trials of one basis share its exchange: the stores stay from trial to trial, so that tuning
costs no more vectors than one run, unless further bases are asked for.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.api.organisations import Organisations
from fedlap_app.api.training import require_organisations, settings_of
from fedlap_app.api.workplace import folder_at
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.store import places
from fedlap_app.studies import tune_table
from fedlap_app.studies.audit.audit import exchanged_vectors
from fedlap_app.studies.tune_runs import Here, Trainer
from fedlap_app.studies.tune_space import (
    Changes,
    basis_of,
    changed,
    in_turn,
    name_of_trial,
    neighbours,
    portfolio,
)

if TYPE_CHECKING:
    import pandas as pd

TRIALS = 24
PRESET, TABLE, REPORT = "preset.toml", "trials.jsonl", "tune.json"
Say = Callable[[str], None]
_SURVIVORS = (4, 2, 1)
"""Trials around which the rest of the budget is spent, a third of it on each number."""
_LEAD = 0.5
"""Standard errors of the validation score by which a choice must lead what was given."""


@dataclass(frozen=True)
class Row:
    """A finished trial; it knows no test score.

    Attributes
    ----------
    changes : settings that differ from the ones given.
    val, loss : validation score and loss over all organisations, the mean over the seeds.
    seconds, up : of the trial; bytes that an organisation sent.
    vectors : vectors that were exchanged for it: none where a basis was there.
    nodes : validation nodes of all organisations.
    """

    changes: dict[str, Any]
    val: float
    loss: float
    seconds: float
    up: float
    vectors: int
    nodes: int


@dataclass(frozen=True)
class Tuned:
    """What tuning chose; made by `tune`.

    Attributes
    ----------
    settings : the chosen ones, for ``train(orgs, preset=...)``.
    folder : holds ``preset.toml``, ``trials.jsonl`` and ``tune.json``; tuning goes on from there.
    report : everything about it.
    """

    settings: Settings
    folder: Path
    report: Mapping[str, Any]

    @property
    def preset(self) -> Path:
        """The preset file."""
        return self.folder / PRESET

    @property
    def table(self) -> "pd.DataFrame":
        """A row a trial, the best validation score first."""
        import pandas as pd

        return pd.DataFrame(self.report["rows"])

    def __repr__(self) -> str:
        return tune_table.text_of(self.report)


def tune(
    orgs: Organisations,
    *,
    trials: int = TRIALS,
    minutes: float = 0.0,
    bases: int = 1,
    seeds: int = 1,
    folder: str | os.PathLike[str] | None = None,
    preset: str | os.PathLike[str] | Settings | None = None,
    progress: bool = False,
    **settings: object,
) -> Tuned:
    """Choose settings for a graph by validation.

    Parameters
    ----------
    orgs
        What `load`, `read` or `split` gave.
    trials
        Trainings: a portfolio first, then changes of the best ones.
    minutes
        No trial begins after so many; 0: no limit.
    bases
        Spectral bases that may be computed, each with the vectors of one run; more than 1 also
        tries other operators and the large end of the spectrum.
    seeds
        Seeds of a trial, which count as one trial; for a benchmark each is another split and
        another basis.
    folder
        Where the trials are noted; one that holds some goes on (default: a new one beside runs).
    preset, settings
        What tuning begins with, as of `train`.
    progress
        Print a line on the error stream after every trial.

    Returns
    -------
    Tuned
        The chosen settings, a preset file and a table of the trials.
    """
    require_organisations(orgs)
    chosen = settings_of(orgs, None, preset, settings)
    require_validation(orgs)
    say = _print if progress else _unsaid
    search = Search(chosen, Here(orgs, chosen.processes), trials, minutes, bases, seeds, say)
    return search.run(new_folder(chosen) if folder is None else folder_at(folder, "folder"))


def require_validation(orgs: Organisations) -> None:
    """Refuse organisations without anything to choose by."""
    if not any(part.val_mask.any() for part in orgs):
        raise DataError("there are no validation nodes to choose by: give some that split")


def new_folder(settings: Settings) -> Path:
    """Where tuning of these settings is noted, beside the runs."""
    data = Path(settings.data).name if settings.data else settings.dataset
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return folder_at(places.runs_dir() / f"{stamp}-{data}-tune", "folder")


def _print(text: str) -> None:
    print(text, file=sys.stderr)


def _unsaid(text: str) -> None:
    """Keep it."""


@dataclass(frozen=True)
class Search:
    """What is tuned, on what, and how long; as of `tune`."""

    settings: Settings
    trainer: Trainer
    trials: int = TRIALS
    minutes: float = 0.0
    bases: int = 1
    seeds: int = 1
    say: Say = _unsaid

    def __post_init__(self) -> None:
        for name, value in (("trials", self.trials), ("bases", self.bases), ("seeds", self.seeds)):
            if value < 1:
                raise ConfigError(f"{name} = {value} leaves nothing to tune: take at least 1")
        if not method_class(self.settings.method).exchanges:
            raise ConfigError(
                f"method = '{self.settings.method}' shares nothing to tune together: take fedlap+, "
                "fedlap or fedavg"
            )

    def run(self, folder: Path) -> Tuned:
        """Try, choose, write the preset and the table."""
        table = _Table(folder / TABLE, self._begun())
        started = time.perf_counter()
        rows: list[Row] = []
        for changes in self._proposals(rows):
            over = self.minutes and time.perf_counter() - started > 60 * self.minutes
            if len(rows) >= self.trials or (over and rows):
                break
            row = table.known(changes)
            if row is None:
                row = self._measure(changes, folder)
                table.add(row)
            rows.append(row)
            self._tell(rows, time.perf_counter() - started)
        best = self._choice(rows)
        settings = replace(changed(self.settings, best.changes), seed=self.settings.seed)
        report = self._report(rows, best, folder)
        RunFolder(folder).write_json(REPORT, report)
        (folder / PRESET).write_text(tune_table.preset_of(settings, report), encoding="utf-8")
        return Tuned(settings, folder, report)

    def _begun(self) -> dict[str, Any]:
        """What trials of one table must have in common."""
        data = self.trainer.about
        return {"settings": self.settings.digest(), "seeds": self.seeds, "data": data}

    def _proposals(self, rows: Sequence[Row]) -> Iterator[Changes]:
        """The portfolio, then changes around fewer and fewer of the best so far."""
        tried: list[Changes] = []
        for changes in portfolio(self.settings, bases=self.bases):
            tried.append(changes)
            yield changes
        left = self.trials - len(tried)
        for number, count in enumerate(_SURVIVORS):
            share = math.ceil(left / (len(_SURVIVORS) - number))
            left -= share
            around = [row.changes for row in sorted(rows, key=_order)[:count]]
            sources = [neighbours(self.settings, each, self.settings.seed) for each in around]
            for changes in in_turn(sources):
                if share <= 0:
                    break
                if changes not in tried:
                    tried.append(changes)
                    share -= 1
                    yield changes

    def _measure(self, changes: Changes, folder: Path) -> Row:
        """Train with every seed; only validation is looked at."""
        started = time.perf_counter()
        settings = changed(self.settings, changes)
        values, losses, ups, vectors, nodes = [], [], [], 0, 0
        for seed in range(settings.seed, settings.seed + self.seeds):
            summary, offline = self.trainer.train(replace(settings, seed=seed), folder)
            values.append(_finite(summary["score"]["val"], 0.0))
            losses.append(_finite(summary["loss"]["val"], math.inf))
            ups.append(_mean([*summary["bytes_up"].values()]))
            nodes += summary["nodes"]["val"]
            if offline and not offline["reused"]:
                vectors += exchanged_vectors(settings)
        seconds = time.perf_counter() - started
        row = dict(changes), _mean(values), _mean(losses), seconds, _mean(ups), vectors
        return Row(*row, nodes // self.seeds)

    def _choice(self, rows: Sequence[Row]) -> Row:
        """The best row, if it leads what was given by more than chance gives away."""
        given, best = rows[0], min(rows, key=_order)
        error = math.sqrt(max(given.val * (1 - given.val), 0.0) / max(given.nodes * self.seeds, 1))
        return best if best.val - given.val > _LEAD * error else given

    def _tell(self, rows: Sequence[Row], seconds: float) -> None:
        row, left = rows[-1], seconds / len(rows) * (self.trials - len(rows))
        best = max(each.val for each in rows)
        self.say(
            f"[TRIAL {len(rows)}/{self.trials}] {name_of_trial(row.changes)}: validation "
            f"{100 * row.val:.2f} %, best {100 * best:.2f} %, {left:.0f} s left"
        )

    def _report(self, rows: Sequence[Row], best: Row, folder: Path) -> dict[str, Any]:
        bases = {basis_of(changed(self.settings, row.changes)) for row in rows} - {""}
        return {
            "dataset": self.settings.data or self.settings.dataset,
            "clients": self.trainer.clients,
            "metric": self.settings.metric,
            "seeds": self.seeds,
            "validation_nodes": rows[0].nodes,
            "trials": len(rows),
            "bases": len(bases),
            "vectors": sum(row.vectors for row in rows),
            "seconds": sum(row.seconds for row in rows),
            "bytes_up_per_client": sum(row.up for row in rows),
            "choice": best.changes,
            "given": rows[0].val,
            "chosen": best.val,
            "folder": str(folder),
            "rows": [
                {"trial": name_of_trial(row.changes), **asdict(row), "chosen": row is best}
                for row in sorted(rows, key=_order)
            ],
        }


def _order(row: Row) -> tuple[float, float]:
    return -row.val, row.loss


def _finite(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class _Table:
    """The file of finished trials, a line each; the first line says what they have in common."""

    def __init__(self, path: Path, begun: Mapping[str, Any]) -> None:
        self._path = path
        self._rows: list[Row] = []
        if not path.exists():
            path.write_text(json.dumps(begun) + "\n", encoding="utf-8")
            return
        # A line that was cut off by a full disk or a kill is a trial that is not finished.
        first, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        if json.loads(first) != begun:
            raise ConfigError(
                f"{path} holds trials of other settings or data: name another folder, or tune "
                "with what it began with"
            )
        self._rows = [Row(**json.loads(line)) for line in lines]
        kept = [first, *lines, ""]
        path.write_text("\n".join(kept), encoding="utf-8")

    def known(self, changes: Changes) -> Row | None:
        """A trial that is finished."""
        return next((row for row in self._rows if row.changes == changes), None)

    def add(self, row: Row) -> None:
        """Note a finished trial."""
        self._rows.append(row)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(row)) + "\n")
