"""`fedlap report`: a page on what came of runs."""

import json
from pathlib import Path

import click

from fedlap_app.errors import ConfigError

_FOLDER = click.Path(path_type=Path)


@click.command(
    epilog="Example: fedlap report ~/.fedlap/runs/20260101-...; "
    "fedlap report --organisation orgs/bank-00"
)
@click.argument("runs", nargs=-1)
@click.option(
    "--organisation",
    "--organization",
    "folder",
    type=_FOLDER,
    default=None,
    help="an organisation's folder: write its own report there, for its eyes only",
)
@click.option(
    "--run",
    "run_folder",
    type=_FOLDER,
    default=None,
    help="with --organisation: the run folder of a simulation (default: the newest model)",
)
@click.option(
    "--out", type=_FOLDER, default=None, help="file to write (default: report.html there)"
)
@click.option("--run-dir", type=_FOLDER, default=None, help="folder of run folders, for numbers")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def report(
    runs: tuple[str, ...],
    folder: Path | None,
    run_folder: Path | None,
    out: Path | None,
    run_dir: Path | None,
    as_json: bool,
) -> None:
    """Write report.html: one page with figures, charts and verdicts, which needs no network.

    RUNS are run folders or numbers of runs, or folders of `fedlap compare`; without any it is the
    newest run. Several are compared in one page. It holds what the server may know. With
    --organisation it is that organisation's own report instead.
    """
    from fedlap_app.cli.status import find_run
    from fedlap_app.cli.voice import set_verbosity
    from fedlap_app.reports.writing import report as write
    from fedlap_app.reports.writing import report_organisation
    from fedlap_app.store import places

    set_verbosity(False)
    if folder is not None:
        if runs:
            raise ConfigError(
                "--organisation is about one folder: name the run of a simulation with --run"
            )
        written = report_organisation(folder, out, run=run_folder)
    elif run_folder is not None:
        raise ConfigError("--run goes with --organisation: name run folders without it")
    else:
        root = (run_dir or places.runs_dir()).expanduser().absolute()
        written = write([find_run(run, root) for run in runs or (None,)], out)
    click.echo(json.dumps({"report": str(written)}) if as_json else f"report: {written}")
