"""A table or figure drawn: ours with deviations, the paper's beside it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.studies.report_files import save_chart
from fedlap_app.studies.tables.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = (
    "#4878a8", "#d1803d", "#5b9a5b", "#a05195", "#8c6d46", "#6b6b6b", "#c44e52", "#64b5cd",
    "#2f4b7c", "#b8a000", "#009e73", "#e377c2", "#111111", "#999933",
)  # fmt: skip
Row = Mapping[str, Any]


def draw_all(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """A chart of all data sets, as PNG and SVG."""
    from matplotlib.figure import Figure

    datasets = report["datasets"]
    figure = Figure(figsize=(5.2 * len(datasets), 4.6), layout="constrained")
    places = figure.subplots(1, len(datasets), squeeze=False)[0]
    for axes, dataset in zip(places, datasets, strict=True):
        rows = [row for row in report["rows"] if row["dataset"] == dataset]
        if EXPERIMENTS[report["experiment"]].over == "bytes":
            _over_bytes(axes, rows)
        else:
            _over_axis(axes, rows)
        axes.set_title(dataset)
        axes.set_ylabel("test score, percent")
        axes.grid(axis="y", alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    places[0].legend(fontsize=6)
    figure.suptitle(f"{report['title']} (protocol {report['protocol']}, {report['seeds']} seeds)")
    paths = [folder / f"{report['experiment']}{suffix}" for suffix in (".png", ".svg")]
    for path in paths:
        save_chart(figure, path)
    return paths


def _over_axis(axes: "Axes", rows: Sequence[Row]) -> None:
    """What the columns differ in, from left to right."""
    names = list(dict.fromkeys(str(row["at"]) for row in rows))
    _draw(axes, rows, lambda row: names.index(str(row["at"])))
    axes.set_xticks(range(len(names)), names)
    axes.set_xlabel(rows[0]["axis"])


def _over_bytes(axes: "Axes", rows: Sequence[Row]) -> None:
    """What an organisation sends and receives, from left to right; columns by name."""
    _draw(axes, rows, _megabytes)
    for row in rows:
        if row["score_mean"] is not None:
            place = (_megabytes(row), row["score_mean"])
            axes.annotate(str(row["at"]), place, (3, 3), textcoords="offset points", fontsize=5)
    axes.set_xscale("log")
    axes.set_xlabel(f"MB up and down; points: {rows[0]['axis']}")


def _draw(axes: "Axes", rows: Sequence[Row], place: Callable[[Row], float]) -> None:
    """A line for every system and curve; hollow marks are the paper's."""
    curves = dict.fromkeys((row["system"], row["curve"]) for row in rows)
    for number, (system, curve) in enumerate(curves):
        own = [row for row in rows if (row["system"], row["curve"]) == (system, curve)]
        places = [place(row) for row in own]
        colour = _COLOURS[number % len(_COLOURS)]
        label = f"{system}, {curve}" if curve else system
        heights = [row["score_mean"] for row in own]
        errors = [row["score_std"] or 0.0 for row in own]
        axes.errorbar(
            places, heights, errors, fmt="o-", ms=3, lw=1, capsize=2, color=colour, label=label
        )
        known = [(at, row["paper"]) for at, row in zip(places, own, strict=True) if row["paper"]]
        if known:
            axes.plot(*zip(*known, strict=True), "s", mfc="none", ms=5, color=colour)


def _megabytes(row: Row) -> float:
    return float(row["up"] + row["down"]) / 1e6
