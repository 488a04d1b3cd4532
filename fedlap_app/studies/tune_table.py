"""What tuning found, as text for a person and as a preset file."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from fedlap_app.graphs.federation import DataSpec
from fedlap_app.knobs import key_of
from fedlap_app.settings import Settings
from fedlap_app.studies.report_files import lines_of

_COLUMNS = (
    ("val", "validation", "{:>10}"),
    ("loss", "loss", "{:>7}"),
    ("seconds", "seconds", "{:>8}"),
    ("up", "MB up", "{:>7}"),
    ("vectors", "vectors", "{:>8}"),
    ("mark", " ", "{:<1}"),
    ("trial", "changes", "{}"),
)
_NOT_OF_A_PRESET = {
    *(key_of(each.name) for each in fields(DataSpec)), "data", "run-dir", "store-dir", "seed",
    "processes",
}  # fmt: skip


def text_of(report: Mapping[str, Any]) -> str:
    """All trials, what they cost, and the choice."""
    rows = [{**row, "mark": "*" if row["chosen"] else ""} for row in report["rows"]]
    seeds = report["seeds"]
    return "\n".join(
        [
            f"{report['dataset']}, {report['clients']} organisations, {report['trials']} trials of "
            f"{seeds} {'seed' if seeds == 1 else 'seeds'}: validation {report['metric']} over "
            f"{report['validation_nodes']} nodes",
            *lines_of(_COLUMNS, rows, _cell),
            "",
            given_away(report),
            f"choice: validation {100 * report['chosen']:.2f} % ({100 * report['given']:.2f} % as "
            "given); the best of many trials is above what it will be on other nodes",
        ]
    )


def given_away(report: Mapping[str, Any]) -> str:
    """What the trials exchanged, for whoever counts it."""
    bases = report["bases"]
    return (
        f"given away: {report['vectors']} vectors for {bases} {'basis' if bases == 1 else 'bases'}"
        f", {report['bytes_up_per_client'] / 1e6:.1f} MB an organisation, and in each of the "
        f"{report['trials']} trials a model and rounded scores every round"
    )


def preset_of(settings: Settings, report: Mapping[str, Any]) -> str:
    """A preset file: what differs from the defaults, without the data."""
    usual = Settings().to_config()
    found = {
        key: value
        for key, value in settings.to_config().items()
        if key not in _NOT_OF_A_PRESET and value != usual.get(key)
    }
    about = (
        f"# Chosen by `fedlap tune` among {report['trials']} trials on {report['dataset']}: "
        f"validation {report['metric']} {100 * report['chosen']:.2f} %."
    )
    return "\n".join([about, *(f"{key} = {json.dumps(found[key])}" for key in found), ""])


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - text or a number
    if key == "val":
        return f"{100 * value:.2f}"
    if key == "loss":
        return f"{value:.3f}"
    if key == "up":
        return f"{value / 1e6:.2f}"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
