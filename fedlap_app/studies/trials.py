"""Single trainings of a study, each in a home of its own, one after the other or in parallel."""

import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from fedlap_app.api.organisations import MEMORY, Organisations
from fedlap_app.api.run import Run
from fedlap_app.api.training import conduct
from fedlap_app.api.workplace import quietly
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.store import places

Scores = dict[str, float | None]


@dataclass(frozen=True)
class Trial:
    """One method with one seed.

    Attributes
    ----------
    settings : what is trained, and on which data.
    orgs : the parts of data that was never on disk; None: the settings name them.
    later : the parts after training, whose new test nodes count; None: those of training do.
    """

    settings: Settings
    orgs: Organisations | None = None
    later: Organisations | None = None


@dataclass(frozen=True)
class Result:
    """What a trial gave; shares are between 0 and 1, None without nodes.

    Attributes
    ----------
    method, seed : which trial it was.
    scores : of train, val and test over all organisations.
    members : test score of every organisation.
    up, down : bytes that an organisation sent and received, their mean.
    seconds : of the whole run.
    """

    method: str
    seed: int
    scores: Scores
    members: Scores
    up: float
    down: float
    seconds: float


def run_trial(trial: Trial, folder: Path) -> Result:
    """Train in a home of its own below a folder; no trial waits for the store of another one."""
    home = Path(tempfile.mkdtemp(prefix="trial-", dir=folder))
    try:
        with quietly(), places.home_at(home):
            run = conduct(trial.settings, orgs=trial.orgs)
            found = result_of(run)
            return found if trial.later is None else _judged_later(found, run, trial.later)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _judged_later(result: Result, run: Run, later: Organisations) -> Result:
    """The result with test scores on the nodes that came after training."""
    from fedlap_app.studies.arrivals import accuracy_later

    counts = accuracy_later(run, later)
    right, count = (sum(each) for each in zip(*counts.values(), strict=True))
    members = {name: hits / some if some else None for name, (hits, some) in counts.items()}
    test = right / count if count else None
    return replace(result, scores={**result.scores, "test": test}, members=members)


def run_trials(
    trials: Sequence[Trial], folder: Path, jobs: int = 1
) -> Iterator[tuple[int, Result]]:
    """Run trials and give each result with its place as soon as it is there.

    A result does not depend on the number of processes.

    Parameters
    ----------
    trials
        What to run.
    folder
        Where homes are made.
    jobs
        Processes that work at the same time; 1: this one.
    """
    if jobs == 1:
        yield from ((number, run_trial(trial, folder)) for number, trial in enumerate(trials))
        return
    # A forked process would inherit torch's threads, of which only one would be alive.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        places_of: dict[Future[Result], int] = {
            pool.submit(run_trial, trial, folder): number for number, trial in enumerate(trials)
        }
        try:
            for done in as_completed(places_of):
                yield places_of[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def trials_of(
    settings: Settings, methods: Sequence[str], seeds: Sequence[int], orgs: Organisations
) -> list[Trial]:
    """Every method with every seed; a benchmark is divided anew for each seed."""
    kept = orgs if settings.data == MEMORY else None
    plain = replace(settings, run_dir="", store_dir="")
    return [
        Trial(replace(plain, method=method, seed=seed), kept)
        for method in methods
        for seed in seeds
    ]


def result_of(run: Run) -> Result:
    """What a run that is finished gave."""
    summary = run.summary
    return Result(
        method=summary["method"],
        seed=summary["seed"],
        scores=dict(summary["score"]),
        members=_members(run),
        up=_mean(summary["bytes_up"]),
        down=_mean(summary["bytes_down"]),
        seconds=sum(summary["seconds"].values()),
    )


def _mean(counts: Mapping[str, Any]) -> float:
    return statistics.mean(counts.values()) if counts else 0.0


def _members(run: Run) -> Scores:
    """Test score of every organisation; of one model on all data the accuracy alone is known."""
    if not method_class(run.settings.method).pooled:
        return {name: each["test"] for name, each in run.summary["client_score"].items()}
    if run.settings.metric != "accuracy":
        return dict.fromkeys(run.organisations.names)
    found: Scores = {}
    for name in run.organisations.names:
        rows = run.predict(name).query("split == 'test'")
        found[name] = float((rows["label"] == rows["predicted"]).mean()) if len(rows) else None
    return found
