"""Measurements of the offline phase as a table for a person and as a chart."""

from pathlib import Path
from typing import Any

from fedlap_app.studies.report_files import check_chart, lines_of, save_chart

_COLUMNS = (
    ("solver", "solver", "{:<14}"),
    ("backend", "sums", "{:<16}"),
    ("round_trips", "trips", "{:>6}"),
    ("bytes_up_per_client", "MB up", "{:>8}"),
    ("bytes_down_per_client", "MB down", "{:>8}"),
    ("bytes_per_value_up", "B/value", "{:>8}"),
    ("seconds", "seconds", "{:>9}"),
    ("seconds_clients", "clients", "{:>9}"),
    ("seconds_server", "server", "{:>9}"),
    ("seconds_sealing", "sealing", "{:>9}"),
    ("seconds_opening", "opening", "{:>9}"),
    ("seconds_adding", "adding", "{:>9}"),
    ("cpu_seconds", "CPU s", "{:>9}"),
    ("cpu_seconds_iteration", "iterate", "{:>9}"),
    ("orthogonality", "orthog.", "{:>9}"),
    ("capture", "capture", "{:>9}"),
)
_COLOURS = {"bare": "#8c8c8c", "textbook": "#c4c4c4", "plain": "#4878a8", "mask": "#d1803d",
    "ckks": "#4f9d69", "ckks-4096": "#9bc4a8", "tenseal-default": "#a8484f",
    "paper": "#6f2a30",
}  # fmt: skip


def table_of(report: dict[str, Any]) -> str:
    """Rows and ratios as text."""
    titles, *rows = lines_of(_COLUMNS, report["rows"], _cell)
    marks = [" *" if row["extrapolated"] else "" for row in report["rows"]]
    lines = [
        f"{report['operator']} of {report['dataset']}, {report['clients']} clients, "
        f"{report['vectors']} vectors in blocks of {report['block']}, {report['rank']} kept, "
        f"median of {report['turns']} turns",
        titles,
        *(row + mark for row, mark in zip(rows, marks, strict=True)),
    ]
    if any(row["extrapolated"] for row in report["rows"]):
        lines.append("* seconds extrapolated from a few steps, trips and bytes predicted")
    lines += ["", "Ratios of CPU seconds:"]
    for bar in report["bars"]:
        verdict = "" if bar["met"] is None else "met" if bar["met"] else "MISSED"
        limit = "" if bar["limit"] is None else f"{bar['bound']} {bar['limit']:g}"
        line = f"{bar['solver']:<14} {bar['what']:<40} {bar['value']:>8.2f}  {limit:<12} {verdict}"
        lines.append(line.rstrip())
    return "\n".join(lines)


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - text, a number or nothing
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if key.startswith("bytes_up") or key.startswith("bytes_down"):
        return f"{value / 1e6:.2f}"
    if key == "orthogonality":
        return f"{value:.1e}"
    if key == "round_trips":
        return str(value)
    return f"{value:.4f}" if key == "capture" else f"{value:.3f}"


def draw(report: dict[str, Any], path: Path) -> None:
    """Seconds and bytes of every solver and back end; the suffix of the file says its form."""
    check_chart(path)
    from matplotlib.figure import Figure

    rows = report["rows"]
    labels = [f"{row['solver']}, {row['backend']}{'*' * row['extrapolated']}" for row in rows]
    figure = Figure(figsize=(9, 1.2 + 0.32 * len(rows)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, key, scale, title in (
        (left, "cpu_seconds", 1.0, "seconds of computing, all parties together"),
        (right, "bytes_up_per_client", 1e-6, "MB sent by a client"),
    ):
        values = [scale * (row[key] or 0) for row in rows]
        bars = axes.barh(labels, values, color=[_COLOURS.get(row["backend"]) for row in rows])
        axes.bar_label(bars, labels=[f"{v:.3g}" if v else "" for v in values], padding=3)
        axes.set_xscale("log" if key == "cpu_seconds" else "linear")
        axes.set_xlabel(title)
        axes.margins(x=0.18)
        axes.spines[["top", "right"]].set_visible(False)
    left.invert_yaxis()
    star = "; * extrapolated" if any(row["extrapolated"] for row in rows) else ""
    figure.suptitle(
        f"{report['operator']} of {report['dataset']}, {report['clients']} clients, "
        f"{report['vectors']} vectors{star}"
    )
    save_chart(figure, path)
