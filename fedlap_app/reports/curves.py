"""Scores of every round as curves, with the stages and the model that is kept."""

from collections.abc import Mapping, Sequence
from typing import Any

from fedlap_app.methods.scores import SPLITS
from fedlap_app.reports.charts import Axis, Chart, dots, lines, upright
from fedlap_app.reports.verdicts import percent

SPLIT_NAMES = {"train": "training", "val": "validation", "test": "test"}
_KINDS = {"accuracy": ("Accuracy", "accuracy", ".0%"), "loss": ("Mean loss", "mean loss", "")}
Rows = Sequence[Mapping[str, Any]]


def position(rows: Rows, stage: int | None, number: int | None) -> int | None:
    """Which of all rounds the round of a stage is, from 1."""
    for at, row in enumerate(rows, 1):
        if (row.get("stage", 0), row.get("round")) == (stage, number):
            return at
    return None


def curves(rows: Rows, kept: int | None, says: str, title: str = "per round") -> list[Chart]:
    """Accuracy and loss of every round, where they are known.

    Parameters
    ----------
    rows
        Totals of the rounds.
    kept
        Which of them gave the model that is kept.
    says
        Words below the first chart.
    title
        What follows the name of the score.
    """
    charts: list[Chart] = []
    for kind, (name, words, form) in _KINDS.items():
        drawn = [
            {"round": at, "value": row.get(f"{split}_{kind}"), "nodes": SPLIT_NAMES[split],
             "kept": at == kept}
            for at, row in enumerate(rows, 1)
            for split in SPLITS
        ]  # fmt: skip
        if all(row["value"] is None for row in drawn):
            continue
        x, y = Axis("round", "round", "d"), Axis("value", words, form)
        marks = [*stage_marks(rows), dots(x, y, "nodes", "kept")]
        told = says if not charts else ""
        if kept is not None:
            found = {split: rows[kept - 1].get(f"{split}_{kind}") for split in SPLITS}
            scores = ", ".join(
                f"{SPLIT_NAMES[split]} {score(value, kind)}" for split, value in found.items()
            )
            told = f"The model that is kept, of round {kept} (dots): {scores}. {told}".rstrip()
        charts.append(lines(f"{name} {title}", told, drawn, x, y, "nodes", marks=marks))
    return charts


def stage_marks(rows: Rows) -> list[dict[str, Any]]:
    """A line where every stage of self-training begins: the model starts anew there."""
    stages = [row.get("stage", 0) for row in rows]
    begins = [at for at in range(1, len(stages)) if stages[at] != stages[at - 1]]
    return [mark for at in begins for mark in upright(at + 1, f"stage {stages[at]} begins")]


def score(value: float | None, kind: str) -> str:
    """A score as people read it."""
    if value is None:
        return "no nodes"
    return percent(value) if kind == "accuracy" else f"{value:.3f}"
