"""A comparison of methods as text for a person and as a chart."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.methods.registry import ALONE, WHOLE_GRAPH
from fedlap_app.studies.report_files import check_chart, lines_of, save_chart
from fedlap_app.studies.variation import ONE_SEED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = (
    ("method", "method", "{:<10}"),
    ("score", "test", "{:>14}"),
    ("std", "deviation", "{:>9}"),
    ("bytes_up_per_client", "MB up", "{:>8}"),
    ("bytes_down_per_client", "MB down", "{:>8}"),
    ("seconds", "seconds", "{:>8}"),
    ("vectors", "vectors", "{:>8}"),
    ("worst_case_auc", "worst AUC", "{:>10}"),
)
_MEGABYTES = ("bytes_up_per_client", "bytes_down_per_client")
_COLOURS = ("#6b6b6b", "#d1803d", "#4878a8", "#5b9a5b", "#a05195", "#8c6d46")


def text_of(report: Mapping[str, Any]) -> str:
    """Methods, their differences, organisations, and the answer."""
    seeds = len(report["methods"][0]["seeds"])
    return "\n".join(
        [
            f"{report['dataset']}, {report['clients']} organisations, "
            f"{seeds} {'seed' if seeds == 1 else 'seeds'}: test {report['score']} in percent",
            *lines_of(_COLUMNS, [_shown(row) for row in report["rows"]], _cell),
            f"({ONE_SEED})" if seeds == 1 else "+-: half of the 95 % interval over the seeds",
            *_worst(report),
            "",
            *[_difference(row) for row in report["differences"]],
            "",
            *_organisations(report),
            *answers(report),
        ]
    )


def lines(report: Mapping[str, Any]) -> list[str]:
    """A line for each method, and nothing else."""
    return [f"  {row['method']:<16} {_mean(row, 'score')} %" for row in report["rows"]]


def answers(report: Mapping[str, Any]) -> list[str]:
    """Whether joining beats training alone, a sentence for each way of joining."""
    joined = [
        row
        for row in report["differences"]
        if row["minus"] == ALONE and row["method"] != WHOLE_GRAPH and row["gain_mean"] is not None
    ]
    return [_answer(row, report["organisations"]) for row in joined]


def _answer(row: Mapping[str, Any], organisations: Sequence[Mapping[str, Any]]) -> str:
    method, low, high = row["method"], row["gain_low"], row["gain_high"]
    gains = [each["gains"][method]["gain_mean"] for each in organisations]
    known = [gain for gain in gains if gain is not None]
    who = f"better at {sum(gain > 0 for gain in known)} of {len(known)} organisations"
    points = f"{row['gain_mean']:+.2f} points against training alone"
    if low is None:
        return f"Joining with {method}: {points}, {who} ({ONE_SEED})"
    certain = low > 0 or high < 0
    verdict = ("worth it" if low > 0 else "not worth it") if certain else "not certain"
    return f"Joining with {method}: {verdict}, {points} ({low:+.2f} to {high:+.2f}), {who}"


def _worst(report: Mapping[str, Any]) -> list[str]:
    if all(row["worst_case_auc"] is None for row in report["rows"]):
        return []
    return [
        "vectors, worst AUC: vectors exchanged, and how well the paper's worst-case attacker finds "
        "edges of the most exposed organisation by them (.5: not at all)"
    ]


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "score": _mean(row, "score"), "std": row["score_std"]}


def _mean(row: Mapping[str, Any], name: str, form: str = ".2f") -> str:
    mean, high = row[f"{name}_mean"], row[f"{name}_high"]
    if mean is None:
        return "-"
    return f"{mean:{form}}" if high is None else f"{mean:{form}} +- {high - mean:.2f}"


def _cell(key: str, value: Any) -> str:  # noqa: ANN401 - text or a number
    if value is None:
        return "-"
    if key in _MEGABYTES:
        return f"{value / 1e6:.2f}"
    if key == "seconds":
        return f"{value:.1f}"
    if isinstance(value, float):
        return f"{value:.3f}" if key == "worst_case_auc" else f"{value:.2f}"
    return str(value)


def _difference(row: Mapping[str, Any]) -> str:
    return f"{row['method']} - {row['minus']}: {_mean(row, 'gain', '+.2f')} points, paired"


def _organisations(report: Mapping[str, Any]) -> list[str]:
    """Mean test score of every organisation with every method."""
    rows = report["organisations"]
    methods = [row["method"] for row in report["rows"]]
    width = max(12, *(len(row["organisation"]) for row in rows))
    columns = [("organisation", "organisation", f"{{:<{width}}}")]
    columns += [(method, method, "{:>9}") for method in methods]
    shown = [{"organisation": row["organisation"], **row["means"]} for row in rows]
    return [*lines_of(columns, shown, _cell), ""]


def draw(report: Mapping[str, Any], path: Path) -> None:
    """Means with intervals beside every organisation's gain over training alone."""
    check_chart(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    _draw_methods(left, report)
    _draw_organisations(right, report)
    seeds = len(report["methods"][0]["seeds"])
    figure.suptitle(
        f"{report['dataset']}, {report['clients']} organisations, "
        + (ONE_SEED if seeds == 1 else f"{seeds} seeds, 95 % intervals")
    )
    save_chart(figure, path)


def _draw_methods(axes: "Axes", report: Mapping[str, Any]) -> None:
    rows = [row for row in report["rows"] if row["score_mean"] is not None]
    for place, (row, colour) in enumerate(zip(rows, _cycle(rows), strict=True)):
        high = row["score_high"]
        error = None if high is None else high - row["score_mean"]
        axes.errorbar(row["score_mean"], -place, xerr=error, color=colour, marker="o", capsize=3)
    axes.set_yticks([-place for place in range(len(rows))], [row["method"] for row in rows])
    axes.set_xlabel(f"test {report['score']}, percent")
    axes.grid(axis="x", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_organisations(axes: "Axes", report: Mapping[str, Any]) -> None:
    """A bar for each organisation and method: its mean test score."""
    rows, methods = report["organisations"], [row["method"] for row in report["rows"]]
    width = 0.8 / len(methods)
    for number, (method, colour) in enumerate(zip(methods, _cycle(methods), strict=True)):
        heights = [row["means"][method] or 0.0 for row in rows]
        lefts = [place + number * width for place in range(len(rows))]
        axes.bar(lefts, heights, width, align="edge", color=colour, label=method)
    names = [row["organisation"] for row in rows]
    axes.set_xticks([place + 0.4 for place in range(len(rows))], names, rotation=60, fontsize=7)
    axes.set_ylabel(f"test {report['score']}, percent")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7)


def _cycle(things: Sequence[object]) -> list[str]:
    return [_COLOURS[number % len(_COLOURS)] for number in range(len(things))]
