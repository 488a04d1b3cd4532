"""A frontier as a table for a person and as a chart."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.studies.report_files import check_chart, lines_of, save_chart
from fedlap_app.studies.variation import ONE_SEED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_COLUMNS = (
    ("operator", "operator", "{:<12}"),
    ("keep", "keep", "{:<10}"),
    ("exchanged", "M", "{:>5}"),
    ("rank", "r", "{:>5}"),
    ("block", "block", "{:>5}"),
    ("round_trips", "trips", "{:>6}"),
    ("handshake_round_trips", "+hand", "{:>5}"),
    ("bytes_up_per_client", "MB up", "{:>8}"),
    ("validation", "validation", "{:>14}"),
    ("test", "test", "{:>14}"),
    ("kl", "KL", "{:>7}"),
    ("p_plus_r", "P+R", "{:>6}"),
    ("inside", "inside", "{:>6}"),
    ("mark", "", "{:<2}"),
)
_MARKERS = "osD^vP*X"
_COLOURS = ("#4878a8", "#d1803d", "#5b9a5b", "#a05195", "#8c6d46", "#6b6b6b")

_RINGS = (
    ("best", 260, "black", "best validation"),
    ("best_under_bound", 160, "green", "best validation within the bound"),
)


def table_of(report: Mapping[str, Any]) -> str:
    """All rows, the two choices, and what was left out."""
    lines = [
        f"{report['dataset']}, {report['partition']} partition, {report['clients']} clients, "
        f"{_plural(report['seeds'], 'seed')} from {report['seed_start']}, {report['nodes']} nodes, "
        f"{report['edges']} edges, density {report['density']:.3g}",
        *lines_of(_COLUMNS, [_shown(row, report["seeds"]) for row in report["rows"]], _cell),
        "",
        "M: vectors exchanged (two products a step with `directed`), r: kept. KL and the largest "
        "P + R: the paper's worst-case attacker at the true density.",
        ONE_SEED if report["seeds"] == 1 else "+-: half of the 95 % interval over the seeds.",
        _choice(report, "best", "highest validation accuracy *", ""),
        _choice(
            report,
            "best_under_bound",
            f"with at most {report['bound']} vectors +",
            _none_inside(report),
        ),
    ]
    for title, kind in (("skipped", "skipped"), ("failed", "FAILED")):
        lines += [f"{kind}: {each['setting']}: {each['reason']}" for each in report[title]]
    return "\n".join(lines)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _shown(row: Mapping[str, Any], seeds: int) -> dict[str, Any]:
    mark = "*" * row["best"] + "+" * row["best_under_bound"]
    splits = {name: _accuracy(row, name, seeds) for name in ("validation", "test")}
    return {**row, **splits, "mark": mark}


def _accuracy(row: Mapping[str, Any], split: str, seeds: int) -> str:
    mean, high = row[f"{split}_mean"], row[f"{split}_high"]
    if mean is None:
        return "-"
    return f"{mean:.2f} +- {high - mean:.2f}" if seeds > 1 else f"{mean:.2f}"


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - text or a number
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key == "bytes_up_per_client":
        return f"{value / 1e6:.2f}"
    if key == "kl":
        return f"{value:.2f}"
    return f"{value:.3f}" if key == "p_plus_r" else str(value)


def _none_inside(report: Mapping[str, Any]) -> str:
    if report["bound"] < 1:
        return "even one vector lets P + R exceed 1 on so dense a graph"
    fewest = min(row["exchanged"] for row in report["rows"])
    return f"no setting that ran exchanges so few, the fewest are {fewest}"


def _choice(report: Mapping[str, Any], which: str, title: str, otherwise: str) -> str:
    row = report[which]
    if row is None:
        scored = any(each["validation_mean"] is not None for each in report["rows"])
        return f"{title}: none, {otherwise if scored else 'there are no validation nodes'}"
    return (
        f"{title}: {row['operator']}, {row['keep']}, M = {row['exchanged']}, r = {row['rank']}, "
        f"block {row['block']}: validation "
        f"{_accuracy(row, 'validation', report['seeds'])} %, "
        f"test {_accuracy(row, 'test', report['seeds'])} %, "
        f"{row['round_trips']} + {row['handshake_round_trips']} round trips, "
        f"{row['bytes_up_per_client'] / 1e6:.2f} MB up, KL {row['kl']:.2f}"
    )


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Test accuracy against vectors and KL, round trips and bytes; both choices are ringed."""
    check_chart(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.8), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, key, scale, title in zip(
        panels,
        ("exchanged", "round_trips", "bytes_up_per_client"),
        (1.0, 1.0, 1e-6),
        ("vectors exchanged, M", "round trips after the handshake", "MB sent by a client"),
        strict=True,
    ):
        _draw_curves(axes, report, key, scale)
        axes.set_xscale("log")
        _tick(axes.xaxis)
        axes.set_xlabel(title)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("test accuracy, percent")
    _draw_leakage(panels[0], report)
    handles, labels = panels[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside right upper", fontsize=8)
    figure.suptitle(
        f"{report['dataset']}, {report['partition']} partition, {report['clients']} clients, "
        f"{_plural(report['seeds'], 'seed')}"
    )
    save_chart(figure, path)


def _draw_curves(axes: "Axes", report: Mapping[str, Any], key: str, scale: float) -> None:
    """A line over the vectors for every other combination; the number beside a point is r."""
    rows = [row for row in report["rows"] if row["test_mean"] is not None]
    kinds = list(dict.fromkeys((row["operator"], row["keep"]) for row in report["rows"]))
    blocks = list(dict.fromkeys(row["block"] for row in report["rows"]))
    curves: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        # Where all are kept the rank changes with the vectors, and yet it is one curve.
        kept = "all" if row["rank"] == row["vectors"] else row["rank"]
        name = (row["operator"], row["keep"], row["block"], kept)
        curves.setdefault(name, []).append(row)
    for (operator, keep, block, _), curve in curves.items():
        curve.sort(key=lambda row: row["exchanged"])
        axes.errorbar(
            [scale * row[key] for row in curve],
            [row["test_mean"] for row in curve],
            yerr=[(row["test_high"] or row["test_mean"]) - row["test_mean"] for row in curve],
            color=_COLOURS[kinds.index((operator, keep)) % len(_COLOURS)],
            marker=_MARKERS[blocks.index(block) % len(_MARKERS)],
            capsize=2,
            linewidth=1,
            label=f"{operator}, {keep}, block {block}",
        )
    for row in rows:
        x, y = scale * row[key], row["test_mean"]
        axes.annotate(str(row["rank"]), (x, y), (4, 4), textcoords="offset points", fontsize=7)
        for which, size, colour, label in _RINGS:
            if row[which]:
                axes.scatter([x], [y], size, "none", edgecolors=colour, label=label)


def _draw_leakage(axes: "Axes", report: Mapping[str, Any]) -> None:
    """The bound as a line, and the KL divergence, which is proportional to M, as a second axis."""
    if report["bound"]:
        axes.axvline(
            report["bound"], color="green", linestyle="--", linewidth=1, label="bound on M"
        )
    first = report["rows"][0]
    share = first["kl"] / first["exchanged"]
    top = axes.secondary_xaxis("top", functions=(lambda m: m * share, lambda kl: kl / share))
    _tick(top.xaxis)
    top.set_xlabel("KL divergence of the worst-case attack, nats", fontsize=8)


def _tick(axis: "Axis") -> None:
    """Plain numbers at 1, 2, 5, 10, ..."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())
