"""`fedlap bench table1` and its like: the paper's tables and figures, measured here."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import click

from fedlap_app.cli.voice import say, set_verbosity, terminated_like_interrupted
from fedlap_app.errors import ConfigError

_TRUNCATION = "truncation"
_MOST_JOBS = 8  # by default: each holds a graph and all of its organisations
_OPTIONS = (
    click.option("--datasets", help="list of data sets (default: those of the table)"),
    click.option("--methods", help="list of systems, or all (default: those of the table)"),
    click.option("--clients", help="list of numbers of organisations (default: all columns)"),
    click.option("--seeds", type=click.IntRange(min=1), default=10, help="seeds (default: 10)"),
    click.option(
        "--seed-start", type=click.IntRange(0, 2**63 - 1), default=0, help="the first seed"
    ),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        help=f"trainings side by side (default: one for each processor, at most {_MOST_JOBS})",
    ),
    click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("bench"),
        help="folder of cells and files, where a stopped run goes on (default: bench)",
    ),
    click.option(
        "--protocol",
        default="fedlap",
        help="fedlap: fresh splits, best validation round; paper: as its authors ran it; "
        "louvain-20-40-40 (default: fedlap)",
    ),
    click.option("--json", "as_json", is_flag=True, help="print one JSON object"),
)


def commands() -> list[click.Command]:
    """A command for every table and figure, and one for all."""
    from fedlap_app.studies.tables.experiments import EXPERIMENTS

    made = [_command(name, each.title, (name,)) for name, each in EXPERIMENTS.items()]
    every = _command("all", "All tables and figures of the paper", (*EXPERIMENTS, _TRUNCATION))
    return [
        *made,
        _command(_TRUNCATION, "What some vectors keep of a graph", (_TRUNCATION,)),
        every,
    ]


def _command(name: str, title: str, experiments: tuple[str, ...]) -> click.Command:
    def run(
        datasets: str | None,
        methods: str | None,
        clients: str | None,
        seeds: int,
        seed_start: int,
        jobs: int | None,
        out: Path,
        protocol: str,
        as_json: bool,
    ) -> None:
        from fedlap_app.studies.tables.bench import bench_table
        from fedlap_app.studies.tables.experiments import experiment
        from fedlap_app.studies.tables.recipes import partition_of
        from fedlap_app.studies.tables.written import markdown

        set_verbosity(False)
        partition = partition_of(protocol)
        with terminated_like_interrupted():
            for each in experiments:
                if each == _TRUNCATION:
                    _truncation(_listed(datasets), out, seed_start, as_json=as_json)
                    continue
                report = bench_table(
                    experiment(each, clients=_numbers(clients), partition=partition),
                    out=out,
                    protocol=protocol,
                    seeds=range(seed_start, seed_start + seeds),
                    datasets=_listed(datasets),
                    methods=_listed(methods),
                    jobs=jobs or min(os.cpu_count() or 1, _MOST_JOBS),
                    say=say,
                )
                click.echo(json.dumps(report, indent=1) if as_json else markdown(report))
        if not as_json:
            click.echo(f"files: {out}")

    run.__doc__ = (
        f"{title}.\n\nEvery system with the same splits, the paper's figures beside ours; writes "
        "CSV, JSON, Markdown, LaTeX, PNG and SVG. A run that is stopped loses at most the cells "
        "in progress."
    )
    example = f"Example: fedlap bench {name} --datasets cora --seeds 1 --methods all"
    return _with_options(click.command(name, epilog=example)(run))


def _truncation(datasets: list[str], out: Path, seed: int, *, as_json: bool) -> None:
    from fedlap_app.studies.report_files import lines_of
    from fedlap_app.studies.tables.truncation import bench_truncation

    report = bench_truncation(datasets or ["cora"], out=out, seed=seed, say=say)
    columns = [(key, key, "{:>14}") for key in ("dataset", "r", "eigenvectors", "krylov")]
    rows = report["rows"]
    lines = lines_of(columns, rows, lambda _, v: f"{v:.4f}" if isinstance(v, float) else str(v))
    click.echo(json.dumps(report, indent=1) if as_json else "\n".join(lines))


def _with_options(command: click.Command) -> click.Command:
    given: Callable[[click.Command], click.Command]
    for given in _OPTIONS:
        command = given(command)
    return command


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(each) for each in _listed(text)]
    except ValueError:
        raise ConfigError(f"--clients {text} is no list of numbers: write 5,10") from None
