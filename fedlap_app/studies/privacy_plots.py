"""Figures of audits and attacks, each as PNG and as SVG."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.privacy.leakage import (
    alpha_of,
    auc_of,
    false_alarm_of,
    precision_at,
    recall_of,
)
from fedlap_app.studies.report_files import save_chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RANKS = (50, 100, 150, 200)
"""Numbers of vectors in the paper's figure."""

_FORMS = (".png", ".svg")
_WORST = "worst-case attacker of the paper"


def draw_audit(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """P + R over the threshold, precision against recall, AUC against the vectors exchanged."""
    prepare(folder)
    title = (
        f"{report['data']}: {report['target']}, n = {report['nodes']}, p = {report['density']:.2g}"
    )
    drawn = {"p-plus-r": _p_plus_r, "precision-recall": _precision_recall, "auc-vectors": _auc}
    paths = []
    for name, draw in drawn.items():
        figure, axes = _figure(title)
        draw(axes, report)
        paths += _save(figure, axes, folder / name)
    return paths


def draw_attacks(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Precision against recall of the worst case, theory and attack in one plot."""
    prepare(folder)
    paths = []
    for found in report["attacks"]:
        if found["name"] != "worst":
            continue
        title = f"{report['data']}: {found['target']}, {found['nodes']} nodes, M = {found['rank']}"
        figure, axes = _figure(title)
        recalls = np.linspace(1e-3, 1.0, 500)
        theory = found["theory"]
        precisions = precision_at(recalls, theory["alpha"], theory["density"])
        axes.plot(recalls, precisions, color="#4878a8", label=f"theory, {_WORST}")
        for key, colour, label in (
            ("curve", "#c44e52", "its attack on the recorded run"),
            ("curve_both_rows", "#8c6d46", "attack with both rows of an edge"),
        ):
            curve = found[key]
            axes.plot(curve["recall"], curve["precision"], color=colour, label=label, linewidth=1)
        axes.set_xlabel("recall")
        axes.set_ylabel("precision")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.02)
        name = found["target"].replace(" ", "-")
        paths += _save(figure, axes, folder / f"attack-{name}")
    return paths


def draw_accuracy(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Accuracy that a bound on the worst-case attacker's AUC leaves, from a frontier.

    At each bound the setting with the highest validation accuracy within it is taken.
    """
    prepare(folder)
    steps = accuracy_steps(report["rows"])
    clients = f"{report['partition']} partition, {report['clients']} clients"
    figure, axes = _figure(f"{report['dataset']}, {clients}")
    bounds = [step[0] for step in steps]
    reached = [step[1] for step in steps]
    axes.step([*bounds, 1.0], [*reached, *reached[-1:]][: len(bounds) + 1] or [0.0], where="post")
    axes.plot(bounds, reached, "o", markersize=4, label="best validation within the bound")
    for auc, accuracy, vectors in steps:
        axes.annotate(f"M = {vectors}", (auc, accuracy), (3, 3), textcoords="offset points")
    axes.set_xlabel(f"bound on the AUC of the {_WORST}, whole graph")
    axes.set_ylabel("test accuracy, percent")
    return _save(figure, axes, folder / "accuracy-auc")


def accuracy_steps(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float, int]]:
    """AUC, test accuracy and vectors of the best setting, wherever a looser bound allows a better.

    The choice is by validation accuracy; of equal ones the smaller AUC counts.
    """
    steps: list[tuple[float, float, int]] = []
    best = -math.inf
    scored = [row for row in rows if None not in (row["validation_mean"], row["test_mean"])]
    for row in sorted(scored, key=lambda row: (row["auc"], -row["validation_mean"])):
        if row["validation_mean"] > best:
            best = row["validation_mean"]
            steps.append((row["auc"], row["test_mean"], row["exchanged"]))
    return steps


def prepare(folder: Path) -> None:
    """Make the folder for figures, before work is done for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be written ({error.strerror}): name another folder for --plot"
        ) from None


def _figure(title: str) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=9)
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: "Figure", axes: "Axes", file: Path) -> list[Path]:
    axes.legend(fontsize=7)
    paths = [file.with_name(file.name + form) for form in _FORMS]
    for path in paths:
        save_chart(figure, path)
    return paths


def _alpha(report: Mapping[str, Any], vectors: int) -> float:
    return alpha_of(min(vectors, report["nodes"]), report["nodes"], report["density"])


def _p_plus_r(axes: "Axes", report: Mapping[str, Any]) -> None:
    """The paper's figure `tpr_precision_threshold`."""
    thresholds, density = np.linspace(-10.0, 15.0, 1001), report["density"]
    for vectors in RANKS:
        recalls, precisions = _rates(thresholds, _alpha(report, vectors), density)
        axes.plot(thresholds, precisions + recalls, label=f"P + R, r = {vectors}", linewidth=1)
        if vectors == 100:
            axes.plot(thresholds, recalls, "r--", label="R, r = 100", linewidth=1)
            axes.plot(thresholds, precisions, "r-.", label="P, r = 100", linewidth=1)
    axes.axhline(1.0, color="black", linewidth=0.6)
    axes.set_xlabel(f"threshold of the {_WORST}")
    axes.set_ylabel("P + R")
    axes.set_ylim(0, 2)


def _rates(thresholds: Any, alpha: float, density: float) -> tuple[Any, Any]:  # noqa: ANN401
    """Recall and precision; where nothing is called any more the precision is 1."""
    recalls, alarms = recall_of(thresholds, alpha), false_alarm_of(thresholds, alpha)
    called = density * recalls + (1.0 - density) * alarms
    precisions = np.divide(density * recalls, called, out=np.ones_like(called), where=called > 0)
    return recalls, precisions


def _precision_recall(axes: "Axes", report: Mapping[str, Any]) -> None:
    recalls = np.linspace(1e-3, 1.0, 500)
    for vectors in sorted({*RANKS, report["vectors"]}):
        precisions = precision_at(recalls, _alpha(report, vectors), report["density"])
        axes.plot(recalls, precisions, label=f"r = {vectors}", linewidth=1)
    axes.set_xlabel(f"recall of the {_WORST}")
    axes.set_ylabel("precision")


def _auc(axes: "Axes", report: Mapping[str, Any]) -> None:
    most = max(row["vectors"] for row in report["table"])
    counts = np.unique(np.geomspace(1, most, 200).astype(int))
    alphas = [_alpha(report, int(count)) for count in counts]
    axes.plot(counts, [auc_of(alpha) for alpha in alphas], label=_WORST)
    doubled = [auc_of(2 * alpha) for alpha in alphas]
    axes.plot(counts, doubled, "--", label="with both rows of an edge")
    axes.axhline(report["auc_bound"], color="green", linewidth=0.8, label="AUC bound")
    axes.axvline(report["vectors"], color="grey", linewidth=0.8, label="vectors of the settings")
    axes.set_xscale("log")
    axes.set_xlabel("vectors exchanged, M")
    axes.set_ylabel("AUC")
