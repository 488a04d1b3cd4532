"""`fedlap update`: a run brought up to date with graphs that changed."""

import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fedlap_app.api.updating import KEEP_BELOW, Updated, settings_elsewhere, update
from fedlap_app.cli.voice import say, set_verbosity, terminated_like_interrupted
from fedlap_app.errors import ConfigError

if TYPE_CHECKING:
    from fedlap_app.api.run import Run

UNCHANGED = 3
"""Exit code when too little changed for an update."""


class Share(click.ParamType[float]):
    """A share such as ``2%`` or ``0.02``."""

    name = "share"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - text, or the default
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """The share as a number from 0 to 1."""
        text = str(value).strip()
        try:
            found = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            found = -1.0
        if not 0.0 <= found <= 1.0:
            self.fail(f"'{text}' is no share: give one such as 2% or 0.02", param, ctx)
        return found


@click.command(name="update", epilog="Example: fedlap update ~/.fedlap/runs/NAME --if-changed 2%")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--data", type=click.Path(path_type=Path), help="folder of organisation folders")
@click.option("--if-changed", type=Share(), default="0%", help="exit with 3 unless more changed")
@click.option(
    "--keep-below",
    type=Share(),
    default=KEEP_BELOW,
    help=f"keep the old basis up to this share of changes (default: {100 * KEEP_BELOW:.0f}%)",
)
@click.option("--cold", is_flag=True, help="start from nothing, as after an organisation left")
@click.option(
    "--exchange",
    is_flag=True,
    help="rows of new nodes from a sealed sum over all their neighbours",
)
@click.option("--rounds", type=click.IntRange(1), help="rounds (default: those of the run)")
@click.option("--superlink", help="HOST:PORT of the SuperLink whose organisations take part")
@click.option(
    "--root-certificates",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="ca.crt of that SuperLink",
)
@click.option("--keep", is_flag=True, help="keep the old basis; where --superlink cannot know")
@click.option(
    "--joined", is_flag=True, help="an organisation joined; where --superlink cannot know"
)
@click.option("--timeout", type=float, default=6.0, help="hours to wait there (default: 6)")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.pass_context
def update_command(
    context: click.Context,
    run: Path,
    data: Path | None,
    if_changed: float,
    keep_below: float,
    cold: bool,
    exchange: bool,
    rounds: int | None,
    superlink: str | None,
    root_certificates: Path | None,
    keep: bool,
    joined: bool,
    timeout: float,
    as_json: bool,
) -> None:
    """Train again on what the organisations hold now, starting from the RUN folder's results.

    A RUN that is a symbolic link points to the new run folder afterwards. With --superlink the
    organisations are elsewhere, and nobody here knows how much changed: --keep, --joined, --cold or
    none of them says what becomes of the basis.

    Exit codes: 0 updated, 3 too little changed, 2 refused.
    """
    from fedlap_app.api.organisations import read
    from fedlap_app.api.run import open_run

    set_verbosity(False)
    before = open_run(run)
    _require_together(context, superlink)
    if superlink is not None:
        choices = {"keep": keep, "exchange": exchange, "joined": joined, "cold": cold}
        _elsewhere(run, before, superlink, root_certificates, timeout, rounds, choices, as_json)
        return
    orgs = read(data, directed=before.settings.directed) if data is not None else None
    chosen: dict[str, Any] = {} if rounds is None else {"rounds": rounds}
    with terminated_like_interrupted():
        found = update(
            before,
            orgs,
            if_changed=if_changed,
            keep_below=keep_below,
            exchange=exchange,
            cold=cold,
            **chosen,
        )
    if cold:
        say("Started from nothing: neither the old basis nor the old model is in the new ones")
    elif found.how == "warm":
        say(
            "Started from the old basis and model: what they hold of organisations that left "
            "stays in the new ones (--cold: none of it)",
            logging.INFO,
        )
    click.echo(json.dumps(_report(found)) if as_json else _text(found))
    if found.run is None:
        sys.exit(UNCHANGED)
    _point(run, found.run.folder)


def _require_together(context: click.Context, superlink: str | None) -> None:
    """Refuse options that belong to the other way of updating."""
    here, there = (
        ("data", "if_changed", "keep_below"),
        ("root_certificates", "keep", "joined", "timeout"),
    )
    for name in there if superlink is None else here:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            why = "goes with --superlink: name the SuperLink as well"
            if superlink is not None:
                why = "looks at the organisations' data, which are not here: leave it out"
            raise ConfigError(f"{option} {why}")


def _elsewhere(
    link: Path,
    before: "Run",
    superlink: str,
    certificates: Path | None,
    timeout: float,
    rounds: int | None,
    choices: dict[str, bool],
    as_json: bool,
) -> None:
    """Update on the SuperNodes of a federation."""
    from fedlap_app.cli.run import show_elsewhere, through_flower
    from fedlap_app.settings import parse_settings

    values = settings_elsewhere(before, **choices)
    values |= {} if rounds is None else {"rounds": rounds}
    settings = parse_settings(values)
    run_id, folder = through_flower(
        {**values, "clients": 0}, settings, superlink, certificates, timeout
    )
    if folder is None:
        show_elsewhere(run_id, as_json, local=False)
        return
    how = "cold" if choices["cold"] else "kept" if choices["keep"] else "warm"
    report = {"how": how, "run_folder": str(folder.path)}
    click.echo(json.dumps(report) if as_json else f"basis: {how}\nrun folder: {folder.path}")
    _point(link, folder.path)


def _point(link: Path, folder: Path) -> None:
    """Let a symbolic link show the new run, so that the next update starts from it."""
    if link.is_symlink():
        new = link.with_name(f".{link.name}.new")
        new.unlink(missing_ok=True)
        new.symlink_to(folder.absolute())
        new.replace(link)


def _report(found: Updated) -> dict[str, Any]:
    run = found.run
    return {
        "how": found.how,
        "share": found.share,
        "changes": {name: asdict(each) for name, each in found.changes.items()},
        "run_folder": str(run.folder) if run is not None else None,
        "accuracy": run.accuracy if run is not None else None,
        "round_trips": run.offline["round_trips"] if run is not None else 0,
    }


def _text(found: Updated) -> str:
    lines = [f"{name}: {changes}" for name, changes in found.changes.items()]
    lines.append(f"largest share of changes: {100 * found.share:.1f} %")
    if found.run is None:
        return "\n".join([*lines, "too little changed: nothing was done"])
    basis = {"kept": "kept", "warm": "computed from the old one", "cold": "computed anew"}
    lines.append(f"basis: {basis[found.how]}, {found.run.offline['round_trips']} round trips")
    test = found.run.accuracy["test"]
    if test is not None:
        lines.append(f"test accuracy: {100 * test:.2f} %")
    return "\n".join([*lines, f"run folder: {found.run.folder}"])
