"""`fedlap train`: runs on the in-process grid, over one seed or several."""

import json
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import settings_from, settings_options
from fedlap_app.cli.voice import set_verbosity
from fedlap_app.settings import Settings


class Bar:
    """A progress bar over the rounds of a run."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._bar: Any = None

    def round_done(self, number: int, rounds: int, totals: Mapping[str, float]) -> None:
        """Move on by a round."""
        if self._bar is None:
            self._bar = click.progressbar(range(rounds), label=self._label, file=sys.stderr)
        self._bar.update(1)
        if number == rounds:
            self._bar.render_finish()


@click.command(
    epilog="Example: fedlap train --dataset cora --clients 10 --partition random --seeds 10 --json"
)
@settings_options
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="number of seeds to run")
@click.option("--seed-start", type=click.IntRange(min=0), default=None, help="the first seed")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.option("--verbose", is_flag=True, help="show the log of the server and the clients")
def train(
    conf: Path | None,
    seeds: int,
    seed_start: int | None,
    as_json: bool,
    verbose: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Train on this machine, in one process, and print the result.

    Methods: fedavg (averages models), local (no exchange) and central (all data in one place).
    """
    settings = settings_from(conf, options)
    set_verbosity(verbose)
    first = settings.seed if seed_start is None else seed_start
    started = time.perf_counter()
    summaries = [_run(replace(settings, seed=seed)) for seed in range(first, first + seeds)]
    report = _report(settings, summaries, time.perf_counter() - started)
    click.echo(json.dumps(report, indent=2) if as_json else _text(report, summaries[-1]))


def _run(settings: Settings) -> dict[str, Any]:
    from server_app.in_process import run_in_process

    return run_in_process(settings, Bar(f"{settings.method}, seed {settings.seed}"))


def _report(settings: Settings, summaries: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """What the seeds have in common, in percent."""
    tests = [100 * summary["accuracy"]["test"] for summary in summaries]
    up = [bytes_up for summary in summaries for bytes_up in summary["bytes_up"].values()]
    return {
        "method": settings.method,
        "dataset": summaries[0]["dataset"],
        "partition": settings.partition,
        "clients": summaries[0]["clients"],
        "seeds": [summary["seed"] for summary in summaries],
        "accuracy_mean": statistics.mean(tests),
        "accuracy_std": statistics.stdev(tests) if len(tests) > 1 else 0.0,
        "accuracies": tests,
        "validation_mean": statistics.mean(100 * s["accuracy"]["val"] for s in summaries),
        "macro_f1_mean": statistics.mean(100 * s["macro_f1"]["test"] for s in summaries),
        "rounds": summaries[0]["rounds"],
        "bytes_up_per_client": statistics.mean(up) if up else 0,
        "seconds": seconds,
        "run_folders": [summary["run_folder"] for summary in summaries],
    }


def _text(report: dict[str, Any], last: dict[str, Any]) -> str:
    spread = f" +- {report['accuracy_std']:.2f}" if len(report["seeds"]) > 1 else ""
    lines = [
        f"{report['method']} on {report['dataset']}, {report['clients']} organisations, "
        f"{report['rounds']} rounds",
        f"  test accuracy  {report['accuracy_mean']:.2f} %{spread}",
    ]
    if len(report["seeds"]) == 1:
        for name, scores in last["client_accuracy"].items():
            test = scores["test"]
            lines.append(f"    {name:<14} {100 * test:.2f} %" if test == test else f"    {name}")
    lines += [
        f"  sent per organisation  {report['bytes_up_per_client'] / 1e6:.2f} MB",
        f"  seconds  {report['seconds']:.1f}",
        f"  run folder  {report['run_folders'][-1]}",
    ]
    return "\n".join(lines)
