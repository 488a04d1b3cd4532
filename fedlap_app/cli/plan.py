"""`fedlap plan`: what the offline phase will take, without running it."""

import json
from pathlib import Path
from typing import Any

import click

from fedlap_app.cli.settings_options import (
    SettingsCommand,
    program_option,
    settings_from,
    settings_options,
)
from fedlap_app.cli.voice import counted, set_verbosity

_ROWS = (
    ("sent by an organisation, mean", "bytes_up_per_client", 1e-6, "MB"),
    ("  largest", "bytes_up_largest", 1e-6, "MB"),
    ("received, mean", "bytes_down_per_client", 1e-6, "MB"),
    ("  largest", "bytes_down_largest", 1e-6, "MB"),
    ("bytes a value sent", "bytes_per_value_up", 1.0, ""),
    ("seconds", "seconds", 1.0, "s"),
    ("  of the slowest organisation", "seconds_client", 1.0, "s"),
    ("  of the server", "seconds_server", 1.0, "s"),
    ("memory of an organisation", "memory_mb client", 1.0, "MB"),
    ("  of the server", "memory_mb server", 1.0, "MB"),
    ("  of all in one process", "memory_mb one_process", 1.0, "MB"),
    ("disk of an organisation", "disk_mb client", 1.0, "MB"),
    ("  of the server", "disk_mb server", 1.0, "MB"),
)


@click.command(
    cls=SettingsCommand,
    epilog="Example: fedlap plan --nodes 200000 --clients 10 --round-trip-seconds 7",
)
@settings_options
@click.option(
    "--nodes",
    type=click.IntRange(min=2),
    default=None,
    help="nodes of a federation that does not exist yet, in equal parts",
)
@click.option(
    "--edges",
    type=click.IntRange(min=0),
    default=None,
    help="its undirected edges (default: five a node)",
)
@click.option(
    "--round-trip-seconds",
    type=click.FloatRange(min=0.0),
    default=None,
    help="of the deployment, about 7 with a process a message (default: all in this process)",
)
@program_option
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
def plan(
    conf: Path | None,
    nodes: int | None,
    edges: int | None,
    round_trip_seconds: float | None,
    program: str | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 - one per setting
) -> None:
    """Predict round trips, bytes, seconds, memory and disk of the offline phase and of training.

    Round trips and bytes follow from the sizes of the federation; seconds from a short calibration
    of this machine, those of training from one round of the largest organisation on its data. What
    most of them go to is named, with what would make it less.
    """
    from fedlap_app.studies.planning.plan import make_plan

    set_verbosity(False)
    settings = settings_from(conf, options)
    report = make_plan(
        settings,
        nodes=nodes,
        edges=edges,
        round_trip_seconds=round_trip_seconds,
        program=program or "",
    )
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return
    click.echo(_text(report, in_process=round_trip_seconds is None))


def _text(report: dict[str, Any], *, in_process: bool) -> str:
    where = (
        f"{report['dataset'] or 'equal parts'}, {report['nodes']} nodes, {report['clients']} "
        "organisations: "
    )
    if report["backends"]:
        lines = _sums(report, where, in_process=in_process)
    else:
        lines = [f"{where}{report['method']} has no sums before training", ""]
    training = report.get("training", {})
    if "parameters" in training:
        lines.append(
            f"Sealed training: {training['parameters']} parameters, "
            f"{training['bytes_per_round'] / 1e6:.2f} MB each way in a round, at most "
            f"{training['bytes_up_per_client'] / 1e6:.1f} MB each way in "
            f"{training['round_trips']} round trips; an organisation seals a round in "
            f"{1000 * training['sealing_seconds_per_round']:.1f} ms and opens one in "
            f"{1000 * training['opening_seconds_per_round']:.1f} ms."
        )
    if "bottleneck" in training:
        lines.append(
            f"Training: the largest organisation takes {training['local_seconds_per_round']:.3f} s "
            f"and {training['local_memory_mb']:.1f} MB beyond its data for a round, "
            f"{counted(training['rounds'], 'round')} at most {training['seconds']:.0f} s. "
            f"Most of it is {training['bottleneck']}: {training['advice']}."
        )
    if not report.get("exact", True):
        lines.append("The graph has no more nodes than vectors: the phase may end earlier.")
    return "\n".join(lines)


def _sums(report: dict[str, Any], where: str, *, in_process: bool) -> list[str]:
    """What the phase before training takes, with every way to sum."""
    plans = report["backends"]
    about = "" if report["exact"] else "about "
    lines = [
        where + report["about"],
        f"round trips: {about}{report['round_trips']} and {report['handshake_round_trips']} "
        "in the handshake",
        "",
        f"{'':32}" + "".join(f"{backend:>17}" for backend in plans),
    ]
    for label, key, scale, unit in _ROWS:
        cells = "".join(f"{_value(plans[b], key) * scale:>14.2f} {unit:<2}" for b in plans)
        lines.append(f"{label:<32}{cells}".rstrip())
    measured = (
        "all parties one after the other in this process"
        if in_process
        else f"all parties side by side, {report['round_trip_seconds']:g} s a round trip"
    )
    return [*lines, "", f"Seconds are estimates from a calibration of this machine: {measured}."]


def _value(plan: dict[str, Any], key: str) -> float:
    """A number of the report, `group name` in a group."""
    first, _, second = key.partition(" ")
    return float(plan[first][second] if second else plan[first])
