"""`fedlap train`: runs on the in-process grid, over one seed or several."""

import contextlib
import json
import logging
import math
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.progress import Progress
from fedlap_app.cli.settings_options import SettingsCommand, settings_from, settings_options
from fedlap_app.cli.voice import counted, say, set_verbosity, terminated_like_interrupted
from fedlap_app.errors import DataError
from fedlap_app.methods.registry import method_class
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.studies.variation import explained, spread


@click.command(
    cls=SettingsCommand,
    epilog="Example: fedlap train --dataset cora --clients 10 --partition random --seeds 10 --json",
)
@settings_options
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="number of seeds to run")
@click.option(
    "--seed-start", type=click.IntRange(0, 2**63 - 1), default=None, help="the first seed"
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    help="the same as --processes (default: one for each core)",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.option("--verbose", is_flag=True, help="show the log of the server and the clients")
def train(
    conf: Path | None,
    seeds: int,
    seed_start: int | None,
    jobs: int | None,
    as_json: bool,
    verbose: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Train on this machine, without Flower's own processes, and print the result.

    Methods: fedlap+ (spectral basis), fedlap (learned structure features), fedavg (averages
    models), local (no exchange), central (all data in one place), and those of other papers that
    docs/settings.md lists.
    """
    from fedlap_app.flower.grids.workers import usable_cores

    settings = settings_from(conf, options)
    settings = replace(settings, processes=jobs or settings.processes or usable_cores())
    set_verbosity(verbose)
    if settings.data:
        _look_at(settings)
    first = settings.seed if seed_start is None else seed_start
    _warn_of_leakage(replace(settings, seed=first))
    started = time.perf_counter()
    summaries: list[dict[str, Any]] = []
    try:
        with terminated_like_interrupted():
            for seed in range(first, first + seeds):
                _run(replace(settings, seed=seed), summaries)
    finally:
        # After Ctrl-C the seeds that were finished still count.
        if summaries:
            report = _report(settings, summaries, time.perf_counter() - started)
            text = _text(report, summaries[-1])
            click.echo(json.dumps(report, indent=2, allow_nan=False) if as_json else text)


def _look_at(settings: Settings) -> None:
    """Read all folders first: on one machine a fault can be named, and a misfit told."""
    from fedlap_app.graphs.agreement import check_federation
    from fedlap_app.graphs.folder import federation_folders, read_federation
    from fedlap_app.privacy.policy import read_policy

    for folder in federation_folders(settings.data):
        read_policy(folder)
    for problem in check_federation(read_federation(settings.data, directed=settings.directed)):
        say(problem, logging.WARNING)


def _warn_of_leakage(settings: Settings) -> None:
    """Say before the first product what the worst-case attacker will learn.

    Parts that do not fit together, or have no edges, are told by the run itself.
    """
    from fedlap_app.flower.grids.in_process import count_clients
    from fedlap_app.studies.audit.audit import one_line
    from fedlap_app.sums.backend import TWO_MEMBERS

    if settings.needs_basis and not method_class(settings.method).pooled:
        if count_clients(settings) == 2:
            say(TWO_MEMBERS, logging.WARNING)
        with contextlib.suppress(DataError):
            say(one_line(settings))


def _run(settings: Settings, summaries: list[dict[str, Any]]) -> None:
    """Run a seed and add its summary, also when Ctrl-C comes after its last file."""
    from fedlap_app.api.training import conduct
    from fedlap_app.flower.grids.local_grid import new_run_id
    from fedlap_app.flower.server.run_folder import RunFolder, root_of

    run_id, before = new_run_id(), len(summaries)
    bar = Progress(f"{settings.method}, seed {settings.seed}")
    try:
        summaries.append(conduct(settings, bar, run_id=run_id).summary)
    except KeyboardInterrupt:
        folder = RunFolder.find(run_id, root_of(settings))
        if len(summaries) == before and folder and folder.finished:
            summaries.append(folder.read_json(names.SUMMARY))
        raise
    finally:
        bar.end()


def _report(settings: Settings, summaries: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What the seeds have in common, in percent."""
    tests = _percent(summaries, "accuracy", "test")
    scores = _percent(summaries, "score", "test")
    up = [bytes_up for summary in summaries for bytes_up in summary["bytes_up"].values()]
    return {
        "method": settings.method,
        "dataset": summaries[0]["dataset"],
        "partition": settings.partition,
        "clients": summaries[0]["clients"],
        "seeds": [summary["seed"] for summary in summaries],
        **spread(tests).row("accuracy"),
        "accuracies": tests,
        "accuracy_by_stage": [
            spread(
                _percent([summary["stages"][stage] for summary in summaries], "accuracy", "test")
            ).mean
            for stage in range(settings.self_training + 1)
        ],
        "metric": settings.metric,
        **spread(scores).row("score"),
        "scores": scores,
        **spread(_percent(summaries, "score", "val")).row("validation"),
        **spread(_percent(summaries, "macro_f1", "test")).row("macro_f1"),
        "rounds": max(summary["rounds"] for summary in summaries),
        "bytes_up_per_client": statistics.mean(up) if up else 0,
        "seconds": seconds,
        "run_folders": [summary["run_folder"] for summary in summaries],
    }


def _percent(summaries: list[dict[str, Any]], score: str, split: str) -> list[float]:
    """A score of every seed in percent; a split without nodes has none."""
    values = [summary[score][split] for summary in summaries]
    return [100 * value for value in values if _is_score(value)]


def _is_score(value: float | None) -> bool:
    """Whether a split has nodes: without them a score is NaN, and null in a file."""
    return value is not None and math.isfinite(value)


def _text(report: dict[str, Any], last: dict[str, Any]) -> str:
    found = spread(report["accuracies"])
    accuracy = "none: there are no test nodes" if found.mean is None else explained(found)
    lines = [
        f"{report['method']} on {report['dataset']}, {report['clients']} organisations, "
        f"{counted(report['rounds'], 'round')}",
        f"  test accuracy  {accuracy}",
    ]
    if report["metric"] != "accuracy":
        lines.append(f"  test {report['metric']}  {explained(spread(report['scores']))}")
    if len(stages := report["accuracy_by_stage"]) > 1 and found.mean is not None:
        lines.append(f"  without self-training  {stages[0]:.2f} %")
    if len(report["seeds"]) == 1:
        for name, scores in last["client_accuracy"].items():
            test = scores["test"]
            lines.append(f"    {name:<14} {100 * test:.2f} %" if _is_score(test) else f"    {name}")
    lines += [
        f"  sent per organisation  {report['bytes_up_per_client'] / 1e6:.2f} MB",
        f"  seconds  {report['seconds']:.1f}",
        f"  run folder  {report['run_folders'][-1]}",
    ]
    return "\n".join(lines)
