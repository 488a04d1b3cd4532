"""The cells of a table: which trainings it takes, kept one by one so that a killed run goes on."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from fedlap_app.settings import Settings
from fedlap_app.store.files import write_shared
from fedlap_app.studies.tables.experiments import Column, Experiment
from fedlap_app.studies.tables.recipes import System, settings_for
from fedlap_app.studies.trials import Result, Trial, run_trials
from fedlap_app.version import VERSION

Say = Callable[[str], None]


@dataclass(frozen=True)
class Cell:
    """One training: a system, a column, a seed."""

    dataset: str
    system: System
    column: Column
    seed: int
    settings: Settings

    @property
    def key(self) -> str:
        """Name of its file: another setting or version makes another cell."""
        said = json.dumps([VERSION, self.settings.to_config()], sort_keys=True)
        short = hashlib.sha256(said.encode()).hexdigest()[:16]
        return f"{self.dataset}-{self.system.name}-{self.seed}-{short}"


def cells_of(
    experiment: Experiment,
    protocol: str,
    datasets: Sequence[str],
    systems: Sequence[System],
    seeds: Sequence[int],
) -> list[Cell]:
    """All cells, the fast systems' and the first seeds' first within a data set."""
    return [
        Cell(
            dataset, system, column, seed,
            _settings(experiment, protocol, dataset, system, column, seed),
        )
        for dataset in datasets
        for seed in seeds
        for column in experiment.columns
        for system in systems
    ]  # fmt: skip


def _settings(
    experiment: Experiment, protocol: str, dataset: str, system: System, column: Column, seed: int
) -> Settings:
    changes = experiment.changes_of(column, system.name)
    return settings_for(system, dataset, protocol, {**changes, "seed": seed})


def measure(cells: Sequence[Cell], folder: Path, jobs: int, say: Say) -> dict[str, Result]:
    """Results by the cells' keys; those that a folder has are read, the others trained.

    Cells whose settings are the same, such as those of one bound in several columns, are one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_key = {cell.key: cell for cell in cells}
    found = {key: read for key in by_key if (read := _read(folder / f"{key}.json"))}
    missing = [cell for key, cell in by_key.items() if key not in found]
    if found:
        say(f"{len(found)} of {len(by_key)} cells are there already")
    started = time.perf_counter()
    for number, (cell, result) in enumerate(_trained(missing, jobs), start=1):
        write_shared(folder / f"{cell.key}.json", json.dumps(asdict(result)).encode())
        found[cell.key] = result
        left = (time.perf_counter() - started) / number * (len(missing) - number)
        say(_line(cell, result, len(found), len(by_key), left))
    return found


def _trained(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, Result]]:
    trials = [Trial(cell.settings) for cell in cells]
    with TemporaryDirectory(prefix="fedlap-bench-") as folder:
        for number, result in run_trials(trials, Path(folder), jobs):
            yield cells[number], result


def _read(path: Path) -> Result | None:
    """A result that was kept; a file that cannot be read is measured again."""
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return Result(**facts)
    except (OSError, ValueError, TypeError):
        return None


def _line(cell: Cell, result: Result, done: int, count: int, left: float) -> str:
    test = result.scores["test"]
    scored = "no test nodes" if test is None else f"test {100 * test:.2f} %"
    where = f"{cell.dataset}, {cell.system.name}, {cell.column.at}, seed {cell.seed}"
    return f"[CELL {done}/{count}] {where}: {scored}, {result.seconds:.0f} s; {_time(left)} left"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes}:{rest:02d} min"


def percent(results: Mapping[str, Result], cells: Sequence[Cell]) -> list[float | None]:
    """Test scores of some cells."""
    scores = [results[cell.key].scores["test"] for cell in cells]
    return [None if score is None else 100 * score for score in scores]
