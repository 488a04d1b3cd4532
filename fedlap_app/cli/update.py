"""`fedlap update`: a run brought up to date with graphs that changed."""

import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from fedlap_app.api.updating import KEEP_BELOW, Updated, update
from fedlap_app.cli.voice import say, set_verbosity, terminated_like_interrupted

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
@click.option("--rounds", type=click.IntRange(1), help="rounds (default: those of the run)")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def update_command(
    run: Path,
    data: Path | None,
    if_changed: float,
    keep_below: float,
    cold: bool,
    rounds: int | None,
    as_json: bool,
) -> None:
    """Train again on what the organisations hold now, starting from the RUN folder's results.

    Exit codes: 0 updated, 3 too little changed, 2 refused.
    """
    from fedlap_app.api.organisations import read
    from fedlap_app.api.run import open_run

    set_verbosity(False)
    before = open_run(run)
    orgs = read(data, directed=before.settings.directed) if data is not None else None
    chosen: dict[str, Any] = {} if rounds is None else {"rounds": rounds}
    with terminated_like_interrupted():
        found = update(
            before, orgs, if_changed=if_changed, keep_below=keep_below, cold=cold, **chosen
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
