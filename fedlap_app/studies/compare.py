"""Whether it is worth joining: methods on the same splits, with price and exposure beside."""

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fedlap_app.api.organisations import MEMORY, Organisations, in_memory
from fedlap_app.api.run import Run
from fedlap_app.api.training import require_organisations, settings_of
from fedlap_app.api.workplace import folder_at
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.methods.registry import ALONE, WHOLE_GRAPH, method_class
from fedlap_app.settings import Settings
from fedlap_app.store import names, places
from fedlap_app.studies import compare_table
from fedlap_app.studies.arrivals import past_and_now
from fedlap_app.studies.audit.audit import exchanged_vectors, worst_exposure
from fedlap_app.studies.report_files import check_chart, check_folder, write_csv
from fedlap_app.studies.trials import Result, Trial, result_of, run_trials, trials_of
from fedlap_app.studies.variation import Spread, spread
from fedlap_app.sums.programs import Krylov

if TYPE_CHECKING:
    import pandas as pd

METHODS = (ALONE, "fedavg", "fedlap+", WHOLE_GRAPH)
FEDERATED = METHODS[:-1]
SEEDS = 5
Say = Callable[[str], None]


def _unsaid(text: str) -> None:
    """Keep it."""


def _print(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True)
class Comparison:
    """Methods side by side; made by `compare`.

    Attributes
    ----------
    report : everything that was found, as in ``compare.json``; scores in percent.
    """

    report: Mapping[str, Any]

    @property
    def table(self) -> "pd.DataFrame":
        """A row a method: mean, deviation, interval, bytes, seconds, vectors, worst-case AUC."""
        import pandas as pd

        return pd.DataFrame(self.report["rows"]).set_index("method")

    @property
    def organisations(self) -> "pd.DataFrame":
        """A row an organisation: mean test score with every method."""
        import pandas as pd

        found = {row["organisation"]: row["means"] for row in self.report["organisations"]}
        return pd.DataFrame.from_dict(found, orient="index").astype(float)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``compare.json``, ``compare.csv`` and ``compare.svg`` into a folder."""
        target = folder_at(folder, "folder")
        RunFolder(target).write_json(names.COMPARISON, self.report)
        self.write_csv(target / "compare.csv")
        self.draw(target / "compare.svg")

    def write_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a line for each method."""
        check_folder(Path(path))
        write_csv(self.report, Path(path))

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draw means and intervals; the suffix says the form: .png, .svg or .pdf."""
        check_chart(Path(path))
        compare_table.draw(self.report, Path(path))

    def __repr__(self) -> str:
        return compare_table.text_of(self.report)


def compare(
    orgs: Organisations,
    methods: Sequence[str] = METHODS,
    *,
    seeds: int | Sequence[int] = SEEDS,
    jobs: int = 1,
    preset: str | os.PathLike[str] | Settings | None = None,
    progress: bool = False,
    **settings: object,
) -> Comparison:
    """Say whether it is worth joining: methods on the same splits, over several seeds.

    A benchmark is divided anew for every seed; your own data keeps its splits, and the seed
    decides initialisation and dropout.

    Parameters
    ----------
    orgs
        What `load`, `read` or `split` gave.
    methods
        What is compared; "local" is what an organisation has without joining.
    seeds
        How many, from that of `orgs` on, or which.
    jobs
        Processes that train at the same time; the scores are the same with any number.
    preset, settings
        As of `train`, for all methods alike.
    progress
        Print a line on the error stream after every training.

    Returns
    -------
    Comparison
        Means with 95 % intervals, paired differences, every organisation, price and exposure.
    """
    require_organisations(orgs)
    chosen = settings_of(orgs, None, preset, settings)
    numbers = range(chosen.seed, chosen.seed + seeds) if isinstance(seeds, int) else list(seeds)
    say = _print if progress else _unsaid
    return compare_settings(chosen, methods, numbers, orgs=orgs, jobs=jobs, say=say)


def compare_settings(
    settings: Settings,
    methods: Sequence[str],
    seeds: Sequence[int],
    *,
    orgs: Organisations,
    jobs: int = 1,
    last: float = 0.0,
    say: Say = _unsaid,
) -> Comparison:
    """`compare` with settings that are put together already.

    With `last`, a share of the labelled nodes, methods are trained on the past and tested on the
    nodes that came last, as the times in the organisations' tables say.
    """
    if not methods or len(set(methods)) < len(methods):
        raise ConfigError(
            f"methods = {list(methods)!r} are no methods to compare: name each of them once, for "
            f"example {', '.join(METHODS)}"
        )
    if not seeds:
        raise ConfigError("seeds = 0 leaves nothing to compare: take at least one")
    if jobs < 1:
        raise ConfigError(f"jobs = {jobs} is no number of processes: take at least 1")
    name, later = settings.data, None
    if last:
        orgs, later = _in_time(settings, last)
        settings = replace(settings, data=MEMORY)
    trials = [replace(each, later=later) for each in trials_of(settings, methods, seeds, orgs)]
    results = _results(trials, jobs, say)
    if all(result.scores["test"] is None for result in results):
        raise DataError("there are no test nodes to compare methods by: give some nodes that split")
    by_method = {
        method: results[at * len(seeds) : (at + 1) * len(seeds)]
        for at, method in enumerate(methods)
    }
    report = _report(settings, list(seeds), orgs, by_method)
    if last:
        report |= {"dataset": name, "partition": f"the last {100 * last:g} % in time are tested"}
    return Comparison(report)


def _in_time(settings: Settings, last: float) -> tuple[Organisations, Organisations]:
    """The organisations as they were, and as they are."""
    if settings.metric != "accuracy":
        raise ConfigError(
            f"metric = '{settings.metric}' is not known of nodes that came after training: try "
            "metric = 'accuracy'"
        )
    past, now = past_and_now(settings, last)
    return in_memory(past, seed=settings.seed), in_memory(now, seed=settings.seed)


def compare_beside(run: Run) -> Comparison:
    """A run beside the other methods with its settings and seed; kept in its run folder."""
    settings, orgs = run.settings, run.organisations
    others = [method for method in FEDERATED if method != settings.method]
    found = {settings.method: [result_of(run)]}
    for result in _results(trials_of(settings, others, [settings.seed], orgs), 1):
        found[result.method] = [result]
    order = [*(method for method in FEDERATED if method in found)]
    order += [method for method in found if method not in order]
    chosen = {method: found[method] for method in order}
    made = Comparison(_report(settings, [settings.seed], orgs, chosen))
    RunFolder(run.folder).write_json(names.COMPARISON, made.report)
    return made


def _results(trials: Sequence[Trial], jobs: int, say: Say = _unsaid) -> list[Result]:
    """Results in the order of the trials."""
    started, found = time.perf_counter(), dict[int, Result]()
    with TemporaryDirectory(prefix="fedlap-compare-") as folder:
        for number, result in run_trials(trials, Path(folder), jobs):
            found[number] = result
            _tell(say, result, len(found), len(trials), time.perf_counter() - started)
    return [found[number] for number in range(len(trials))]


def new_folder(settings: Settings) -> Path:
    """Where a comparison of these settings is kept, beside the runs."""
    data = Path(settings.data).name if settings.data else settings.dataset
    stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return places.runs_dir() / f"{stamp}-{data}-compare"


def _tell(say: Say, result: Result, done: int, count: int, seconds: float) -> None:
    test = result.scores["test"]
    scored = "no test nodes" if test is None else f"test {100 * test:.2f} %"
    left = seconds / done * (count - done)
    say(f"[RUN {done}/{count}] {result.method}, seed {result.seed}: {scored}, {left:.0f} s left")


def _report(
    settings: Settings,
    seeds: list[int],
    orgs: Organisations,
    found: Mapping[str, Sequence[Result]],
) -> dict[str, Any]:
    spreads = {method: spread(_tests(results)) for method, results in found.items()}
    exposure = worst_exposure(settings, list(orgs))
    return {
        "dataset": settings.data or settings.dataset,
        "partition": settings.partition,
        "clients": len(orgs),
        "score": settings.metric,
        "one_seed": len(seeds) == 1,
        "methods": [_entry(method, spreads[method], seeds) for method in found],
        "differences": [
            {"method": other, "minus": method, **_gain(found, method, other)}
            for method, other in combinations(found, 2)
        ],
        "organisations": _organisations(found),
        "rows": [
            {
                "method": method,
                **spreads[method].row("score"),
                "seeds": len(seeds),
                **_price(results),
                **_exposure(method, settings, exposure),
            }
            for method, results in found.items()
        ],
    }


def _tests(results: Sequence[Result]) -> list[float | None]:
    return [_percent(result.scores["test"]) for result in results]


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _entry(method: str, found: Spread, seeds: list[int]) -> dict[str, Any]:
    """A method for whoever draws it; one seed has an interval without width."""
    interval = found.interval or (found.mean, found.mean)
    return {
        "method": method,
        "mean": found.mean,
        "std": found.std or 0.0,
        "interval": list(interval),
        "seeds": seeds,
    }


def _gain(
    found: Mapping[str, Sequence[Result]], method: str, other: str
) -> dict[str, float | None]:
    """What the other method has more on the same splits."""
    return spread(_minus(_tests(found[other]), _tests(found[method]))).row("gain")


def _organisations(found: Mapping[str, Sequence[Result]]) -> list[dict[str, Any]]:
    """Mean test score of every organisation, and what it gains over training alone."""
    names = next(iter(found.values()))[0].members
    rows = []
    for name in names:
        scores = {
            method: [_percent(result.members[name]) for result in results]
            for method, results in found.items()
        }
        row: dict[str, Any] = {
            "organisation": name,
            "means": {method: spread(values).mean for method, values in scores.items()},
        }
        if ALONE in scores:
            row["gains"] = {
                method: spread(_minus(values, scores[ALONE])).row("gain")
                for method, values in scores.items()
                if method != ALONE
            }
        rows.append(row)
    return rows


def _minus(values: Sequence[float | None], others: Sequence[float | None]) -> list[float | None]:
    pairs = zip(values, others, strict=True)
    return [None if a is None or b is None else a - b for a, b in pairs]


def _price(results: Sequence[Result]) -> dict[str, float]:
    return {
        "bytes_up_per_client": statistics.mean(result.up for result in results),
        "bytes_down_per_client": statistics.mean(result.down for result in results),
        "seconds": statistics.mean(result.seconds for result in results),
    }


def _exposure(method: str, settings: Settings, worst: Mapping[str, Any]) -> dict[str, Any]:
    """Vectors that a method exchanges, and how well the worst case finds edges from them."""
    kind = method_class(method)
    basis = (Krylov.name in kind.programs or settings.spectral) and not kind.pooled
    return {
        "vectors": exchanged_vectors(settings) if basis else 0,
        "worst_case_auc": worst["auc"] if basis else None,
    }
