"""`fedlap audit`: what others can learn about edges, in numbers, before anything is sent."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import (
    SettingsCommand,
    collect,
    program_option,
    settings_options,
)
from fedlap_app.cli.voice import set_verbosity
from fedlap_app.errors import ConfigError
from fedlap_app.settings import Settings, parse_settings

_MOST_ENTRIES = 4_000_000
"""Nodes times vectors up to which the basis is computed without being asked for."""


@click.command(
    cls=SettingsCommand,
    epilog="Example: fedlap audit --dataset cora --clients 10 --partition random --vectors 31; "
    "fedlap audit orgs/bank-00 --vectors 31; fedlap audit --job orgs/bank-00/store",
)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@settings_options
@click.option(
    "--paper-p",
    is_flag=True,
    help="the paper's whole-graph n and its p = 2 x (directed entries) / n^2",
)
@click.option(
    "--auc-bound", type=float, default=0.75, help="AUC not to be exceeded (default: 0.75)"
)
@click.option("--table", "counts", help="numbers of vectors in the table, for example 10,31,100")
@click.option(
    "--exact/--no-exact",
    default=None,
    help="compute the basis in this process for exact leverages (default: unless it is large)",
)
@click.option(
    "--plot", type=click.Path(path_type=Path), help="folder for the figures, as PNG and SVG"
)
@click.option(
    "--job",
    type=click.Path(path_type=Path),
    help="what was given away so far: a job's folder, a store or an organisation folder",
)
@program_option
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def audit(
    folder: Path | None,
    job: Path | None,
    conf: Path | None,
    paper_p: bool,
    auc_bound: float,
    counts: str | None,
    exact: bool | None,
    plot: Path | None,
    program: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Say what others can learn about edges from the offline phase.

    For a data set, a partition and a configuration, or, with FOLDER, for one organisation's folder
    from what that organisation alone knows. Every number says which attacker it is about.
    """
    from fedlap_app.studies.audit.audit_text import text_of
    from fedlap_app.studies.audit.exposure import TABLE

    set_verbosity(False)
    given = collect(conf, options)
    if job is not None:
        if folder is not None or given or program is not None:
            raise ConfigError(
                "--job reads what was recorded: give no folder and no setting with it"
            )
        _show_job(job, as_json=as_json)
        return
    numbers, chosen = TABLE if counts is None else _numbers(counts), program or ""
    if folder is not None:
        report = _organisation(folder, given, paper_p, auc_bound, numbers, chosen)
    else:
        report = _federation(parse_settings(given), paper_p, auc_bound, numbers, exact, chosen)
    if plot is not None:
        from fedlap_app.studies.privacy_plots import draw_audit

        report["figures"] = [str(path) for path in draw_audit(report, plot)]
    click.echo(json.dumps(report, indent=2) if as_json else text_of(report))


def _show_job(path: Path, *, as_json: bool) -> None:
    """Print what the ledgers at a path say was given away."""
    from fedlap_app.studies.audit.ledger_report import job_report, report_text

    report = job_report(path)
    click.echo(json.dumps(report, indent=2) if as_json else report_text(report))


def _organisation(
    folder: Path,
    given: Mapping[str, object],
    paper_p: bool,
    auc_bound: float,
    numbers: tuple[int, ...],
    program: str,
) -> dict[str, Any]:
    from fedlap_app.studies.audit.audit import audit_organisation

    for key in ("dataset", "data"):
        if given.get(key):
            raise ConfigError(f"{folder} and --{key} exclude each other: give one of them")
    if paper_p:
        raise ConfigError(
            "--paper-p needs the whole graph, which one organisation does not know: leave it out"
        )
    settings = parse_settings(given)
    return audit_organisation(
        folder, settings, auc_bound=auc_bound, counts=numbers, program=program
    )


def _federation(
    settings: Settings,
    paper_p: bool,
    auc_bound: float,
    numbers: tuple[int, ...],
    exact: bool | None,
    program: str,
) -> dict[str, Any]:
    from fedlap_app.studies.audit.audit import audit_federation
    from fedlap_app.studies.recorder import basis_rows

    if exact and (paper_p or settings.operator == "directed"):
        raise ConfigError(
            "--exact has no meaning with --paper-p or --operator directed, where the paper's "
            "approximation is all there is: leave it out"
        )
    return audit_federation(
        settings,
        paper_p=paper_p,
        auc_bound=auc_bound,
        counts=numbers,
        rows=None if exact is False or settings.operator == "directed" else basis_rows,
        most_entries=None if exact else _MOST_ENTRIES,
        program=program,
    )


def _numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise ConfigError(
            f"--table {text!r} is not a list of whole numbers from 1 on: try --table 10,31,100"
        )
    return tuple(int(word) for word in words)
