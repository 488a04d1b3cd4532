"""`fedlap run`: `flwr run .`, waited for, with a truthful exit code."""

import contextlib
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fedlap_app
from fedlap_app.cli.settings_options import SettingsCommand, collect, settings_options
from fedlap_app.cli.voice import say, terminated_like_interrupted
from fedlap_app.cli.watch import Follower
from fedlap_app.errors import ConfigError, DataError, FedLapError, RunError
from fedlap_app.methods.registry import distributed, method_class
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.store import names, places

if TYPE_CHECKING:
    from fedlap_app.flower.server.run_folder import RunFolder
    from fedlap_app.flower.submission import Flower

_NODES = 5
_HOUR = 3600.0


@click.command(
    cls=SettingsCommand, epilog="Example: fedlap run --conf conf/digits.toml --clients 5"
)
@settings_options
@click.option("--superlink", default=None, help="HOST:PORT of a SuperLink that runs already")
@click.option(
    "--root-certificates",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=None,
    help="ca.crt of that SuperLink (default: a connection without TLS)",
)
@click.option("--json", "as_json", is_flag=True, help="print the summary as JSON")
@click.option(
    "--compare/--no-compare",
    "compared",
    default=False,
    help="show the other methods beside it, trained in this process after a simulation",
)
@click.option("--timeout", type=float, default=6.0, help="hours to wait (default: 6)")
def run(
    conf: Path | None,
    superlink: str | None,
    root_certificates: Path | None,
    as_json: bool,
    compared: bool,
    timeout: float,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Run the app through Flower and exit non-zero if the run failed.

    Does what `flwr run .` does, in a simulation on a SuperLink of its own that is stopped at the
    end, or with --superlink on the SuperNodes of a federation. Ctrl-C stops the run.
    """
    from fedlap_app.flower.steps import unsealed_at_home

    values = collect(conf, options)
    settings = parse_settings(values)
    if method_class(settings.method).pooled:
        raise ConfigError(
            f"method = '{settings.method}' needs all data in one place: use `fedlap train`, or "
            f"choose {', '.join(distributed())}"
        )
    if root_certificates and not superlink:
        raise ConfigError("--root-certificates goes with --superlink: name the SuperLink as well")
    if not superlink:
        home = unsealed_at_home(settings)
        values |= {} if home == settings else {"training-backend": home.training_backend}
    nodes = settings.clients or (0 if superlink else nodes_of(settings.data))
    run_id, folder = through_flower(
        {**values, "clients": nodes}, settings, superlink, root_certificates, timeout
    )
    if folder is None:
        show_elsewhere(run_id, as_json, local=superlink is None)
        return
    _show(folder.read_json(names.SUMMARY), as_json)
    if compared and superlink is None:
        _show_others(folder.path, quiet=as_json)
    if not as_json:
        _show_verdict(folder.path, settings.with_clients(nodes), simulated=superlink is None)


def through_flower(
    values: Mapping[str, Any],
    settings: Settings,
    superlink: str | None,
    root_certificates: Path | None,
    timeout: float,
) -> "tuple[int, RunFolder | None]":
    """Submit a run and wait for its end; number and folder, if that is on this machine.

    Parameters
    ----------
    values
        What differs from the defaults, with `clients`: 0 for all.
    settings
        All of it.
    superlink, root_certificates
        Where; None: in a simulation of its own.
    timeout
        Hours to wait.
    """
    from fedlap_app.flower.server.run_folder import RunFolder, root_of

    nodes = int(values["clients"])
    with terminated_like_interrupted(), flower_at(superlink, root_certificates) as flower:
        where = f"Submitting to {superlink}" if superlink else "Starting Flower's simulation"
        say(f"{where} with {nodes or 'all'} organisations")
        run_id = flower.submit(values, nodes)
        say(f"Run {run_id} is on its way")
        with Follower(root_of(settings), run_id):
            status = _wait(flower, run_id, timeout * _HOUR)
        folder = RunFolder.find(run_id, root_of(settings))
    if status != "finished:completed":
        say(f"{_reason(folder, flower)} ({status})", logging.ERROR)
        sys.exit(1)
    return run_id, folder


def _show_verdict(folder: Path, settings: Settings, *, simulated: bool) -> None:
    """The first screen of the report, where the report is, and what others can learn."""
    from fedlap_app.reports.writing import report, verdict_lines
    from fedlap_app.studies.audit.audit import one_line

    try:
        click.echo("\n".join(verdict_lines(folder)))
        click.echo(f"  report           {report(folder)}")
    except FedLapError as error:  # the run itself went well
        say(f"there is no report: {error}", logging.WARNING)
    if simulated and settings.needs_basis:
        with contextlib.suppress(DataError):
            click.echo(one_line(settings))


def flower_at(superlink: str | None, authority: Path | None) -> "Flower":
    """A SuperLink that runs already, or one of Flower's simulation."""
    from fedlap_app.flower.submission import LocalFlower, RemoteFlower

    project = project_folder()
    if superlink is None:
        return LocalFlower(project, project / ".flwr")
    return RemoteFlower(project, places.home() / "flwr", superlink, authority)


def _wait(flower: "Flower", run_id: int, timeout: float) -> str:
    """Wait for the end of the run; Ctrl-C stops the run first."""
    try:
        return flower.wait(run_id, timeout)
    except KeyboardInterrupt:
        say("Stopping the run")
        flower.cancel(run_id)
        raise


def show_elsewhere(run_id: int, as_json: bool, *, local: bool) -> None:
    """The run is done, but its folder is on the machine of the ServerApp."""
    if local:
        raise RunError(f"run {run_id} left no run folder: look at the log in .flwr")
    says = "the summary is in the run folder on the machine of the ServerApp"
    if as_json:
        click.echo(json.dumps({"run": run_id, "status": "finished:completed", "note": says}))
    else:
        click.echo(f"Run {run_id} is finished; {says}")


def nodes_of(data: str) -> int:
    """Organisations of a simulation that names no number of them."""
    from fedlap_app.graphs.folder import federation_folders

    return len(federation_folders(Path(data))) if data else _NODES


def project_folder() -> Path:
    """Folder of the app: the working directory, or the checkout this code is from."""
    for folder in (Path.cwd(), Path(fedlap_app.__file__).parents[1]):
        file = folder / "pyproject.toml"
        if file.is_file() and "server_app.app:app" in file.read_text(encoding="utf-8"):
            return folder
    raise ConfigError("there is no Flower app here: run this in a checkout of the project")


def _reason(folder: "RunFolder | None", flower: "Flower") -> str:
    """The sentence that the ServerApp left behind."""
    if folder is not None and (folder.path / names.ERROR).exists():
        return str(folder.read_json(names.ERROR)["error"])
    return f"the run failed; {flower.where_to_look()}"


def _show_others(folder: Path, *, quiet: bool) -> None:
    """What the same organisations reach without the method of the run."""
    from fedlap_app.api.run import open_run
    from fedlap_app.cli.voice import set_verbosity
    from fedlap_app.studies.compare import compare_beside
    from fedlap_app.studies.compare_table import lines

    set_verbosity(False)
    report = compare_beside(open_run(folder)).report
    if not quiet:
        score = report["score"]
        click.echo(f"Is it worth joining? Test {score} (one seed; more: `fedlap compare`)")
        click.echo("\n".join(lines(report)))


def _show(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary, indent=2))
        return
    click.echo(f"{summary['method']} on {summary['dataset']}, {summary['clients']} organisations")
    for split, value in summary["accuracy"].items():
        text = (
            "none: there are no such nodes, or too few to tell"
            if value is None
            else f"{100 * value:.2f} %"
        )
        click.echo(f"  {split + ' accuracy':<16} {text}")
    if (metric := summary.get("metric", "accuracy")) != "accuracy":
        score = summary["score"]["test"]
        shown = "none" if score is None else f"{100 * score:.2f} %"
        click.echo(f"  {'test ' + metric:<16} {shown}")
    stage = f" in stage {summary['best_stage']}" if len(summary["stages"]) > 1 else ""
    best = summary["best_round"]
    known = f"{best}{stage}, " if best is not None else "known to the organisations, "
    click.echo(f"  best round       {known}{summary['rounds']} in all")
    click.echo(f"  run folder       {summary['run_folder']}")
