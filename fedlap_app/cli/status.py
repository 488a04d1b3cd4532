"""`fedlap status`: how a run stands."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.status_file import read_status
from fedlap_app.cli.voice import unit_of
from fedlap_app.cli.watch import watch
from fedlap_app.errors import ConfigError
from fedlap_app.store import names, places

_MB = 1e6
_SEALED = "sealed ({}): the server sees no update, and no score of one organisation"
_TRAINING = {"plain": "plain: the server sees every update and score"}


@click.command(epilog="Example: fedlap status 4125173958721433672")
@click.argument("run", required=False)
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    default=None,
    help="folder of run folders (default: ~/.fedlap/runs)",
)
@click.option("--watch", "watched", is_flag=True, help="show the progress until the run ends")
@click.option("--serve", is_flag=True, help="show it as a page on this machine, until Ctrl-C")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="of --serve (default: free)")
@click.option(
    "--tensorboard",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="write the scores of rounds below this folder (extra `tensorboard`)",
)
@click.option("--mlflow", default=None, help="and to MLflow at this address (extra `mlflow`)")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def status(
    run: str | None,
    run_dir: Path | None,
    watched: bool,
    serve: bool,
    port: int,
    tensorboard: Path | None,
    mlflow: str | None,
    as_json: bool,
) -> None:
    """Show phase, progress and organisations of a run: its number, its folder, or the newest one.

    It says whether training is sealed or the server sees every update.

    For each organisation: when it was last heard of, the bytes that it sent and received, and how
    often a message to it had to be repeated. In a deployment the run folders are with the
    ServerApp, below the coordinator's state/fedlap/runs. The exit code is 1 for a run that failed,
    and 2 for one that is not found or whose files are damaged.
    """
    from fedlap_app.reports.trackers import tracking

    folder = find_run(run, (run_dir or places.runs_dir()).expanduser().absolute())
    if serve:
        _serve(folder, port)
        return
    with tracking(folder, tensorboard, mlflow) as look:
        found = watch(folder, look) if watched else read_status(folder)
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(_lines(found)))
    if found["state"] in ("failed", "died"):
        raise click.exceptions.Exit(1)


def _serve(folder: Path, port: int) -> None:
    """Serve the page until somebody stops it."""
    from fedlap_app.cli.live import LivePage

    read_status(folder)
    try:
        page = LivePage(folder, port)
    except OSError as error:
        raise ConfigError(
            f"port {port} of this machine cannot be taken ({error.strerror}): leave --port out"
        ) from None
    click.echo(f"{page.address}  (this machine only; Ctrl-C ends it)")
    with page:
        page.serve_forever()


def find_run(run: str | None, root: Path) -> Path:
    """Folder of a run that is named by its number or its folder, or of the newest run."""
    if run is not None and Path(run).expanduser().is_dir():
        return Path(run).expanduser().absolute()
    folders = [each for each in root.glob("*") if (each / names.CONFIG).is_file()]
    if run is not None:
        folders = [each for each in folders if each.name == run or each.name.endswith(f"-{run}")]
    if not folders:
        what = f"run {run!r}" if run is not None else "run"
        raise ConfigError(
            f"there is no {what} in {root}: give its number or folder, or name --run-dir"
        )
    return max(folders, key=lambda folder: folder.stat().st_mtime)


def _lines(found: dict[str, Any]) -> list[str]:
    progress = found["progress"]
    unit = unit_of(progress["total"], progress["unit"])
    counted = f"{progress['done']} of {progress['total']} {unit}"
    done = f", {counted}" if progress["total"] else ""
    phase = "" if found["phase"] == found["state"] else f", {found['phase']}"
    lines = [
        f"Run {found['run']}: {found['state']}{phase}{done}",
        f"  last sign of life  {_ago(found['updated'])}",
        f"  run folder         {found['run_folder']}",
    ]
    if training := found.get("training"):
        lines.append(f"  training           {_TRAINING.get(training, _SEALED).format(training)}")
    if found["reason"]:
        lines.append(f"  reason             {found['reason']}")
    if found["organisations"]:
        lines.append(
            f"  {'organisation':<16} {'last seen':>12} {'MB up':>9} {'MB down':>9} {'retries':>8}"
        )
    for name, facts in found["organisations"].items():
        lines.append(
            f"  {name:<16} {_ago(facts['last_seen']):>12} {facts['bytes_up'] / _MB:>9.2f} "
            f"{facts['bytes_down'] / _MB:>9.2f} {facts['retries']:>8}"
        )
    return lines


def _ago(time: str | None) -> str:
    if time is None:
        return "never"
    seconds = max((datetime.now(UTC) - datetime.fromisoformat(time)).total_seconds(), 0.0)
    for unit, length in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
