"""`fedlap run`: `flwr run .` with a SuperLink of its own, waited for, with a truthful exit code."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fedlap_app
from fedlap_app.cli.settings_options import collect, settings_options
from fedlap_app.errors import ConfigError
from fedlap_app.settings import parse_settings

if TYPE_CHECKING:
    from server_app.flower import LocalFlower
    from server_app.run_folder import RunFolder

_NODES = 5
_HOUR = 3600.0


@click.command(epilog="Example: fedlap run --conf conf/digits.toml --clients 5")
@settings_options
@click.option("--json", "as_json", is_flag=True, help="print the summary as JSON")
@click.option("--timeout", type=float, default=6.0, help="hours to wait (default: 6)")
def run(
    conf: Path | None,
    as_json: bool,
    timeout: float,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Run the app in Flower's simulation and exit non-zero if the run failed.

    Does what `flwr run .` does, on a SuperLink of its own that is stopped at the end.
    """
    from server_app.flower import LocalFlower
    from server_app.run_folder import RunFolder

    values = collect(conf, options)
    settings = parse_settings(values)
    if settings.method == "central":
        raise ConfigError(
            "method = 'central' needs all data in one place: use `fedlap train`, or choose "
            "fedlap+, fedlap, fedavg or local"
        )
    nodes = settings.clients or _nodes_of(settings.data)
    project = _project()
    with LocalFlower(project, project / ".flwr") as flower:
        click.echo(f"Starting Flower's simulation with {nodes} organisations", err=True)
        run_id = flower.submit({**values, "clients": nodes}, nodes)  # type: ignore[dict-item]
        click.echo(f"Run {run_id} is on its way", err=True)
        status = flower.wait(run_id, timeout * _HOUR)
        root = Path(settings.run_dir) if settings.run_dir else None
        folder = RunFolder.find(run_id, root)
    if status != "finished:completed" or folder is None:
        click.echo(f"Error: {_reason(folder, flower)} ({status})", err=True)
        sys.exit(1)
    _show(folder.read_json("summary.json"), as_json)


def _nodes_of(data: str) -> int:
    from fedlap_app.graphs.folder import federation_folders

    return len(federation_folders(Path(data))) if data else _NODES


def _project() -> Path:
    """Folder of the app: the working directory, or the checkout this code is from."""
    for folder in (Path.cwd(), Path(fedlap_app.__file__).parents[1]):
        file = folder / "pyproject.toml"
        if file.is_file() and "server_app.app:app" in file.read_text(encoding="utf-8"):
            return folder
    raise ConfigError("there is no Flower app here: run this in a checkout of the project")


def _reason(folder: "RunFolder | None", flower: "LocalFlower") -> str:
    """The sentence that the ServerApp left behind."""
    if folder is not None and (folder.path / "error.json").exists():
        return str(folder.read_json("error.json")["error"])
    return f"the run failed; the log is {flower.log_file}"


def _show(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(summary, indent=2))
        return
    click.echo(f"{summary['method']} on {summary['dataset']}, {summary['clients']} organisations")
    for split, value in summary["accuracy"].items():
        click.echo(f"  {split + ' accuracy':<16} {100 * value:.2f} %")
    click.echo(f"  best round       {summary['best_round']} of {summary['rounds']}")
    click.echo(f"  run folder       {summary['run_folder']}")
