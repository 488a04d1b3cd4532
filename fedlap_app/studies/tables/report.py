"""What cells give as rows: ours, the paper's, their difference, price and exposure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from fedlap_app.methods.registry import method_class
from fedlap_app.studies.audit.audit import exchanged_vectors
from fedlap_app.studies.tables.cells import Cell, percent
from fedlap_app.studies.tables.experiments import Experiment
from fedlap_app.studies.tables.recipes import System, paper_figures
from fedlap_app.studies.trials import Result
from fedlap_app.studies.variation import spread
from fedlap_app.sums.programs import Krylov, NeighbourSums

PAPER_RUNS = 10
OURS = "fedlap+"
"""What the others are compared with where seeds are shared."""
Row = dict[str, Any]


def rows_of(
    experiment: Experiment, cells: Sequence[Cell], results: Mapping[str, Result]
) -> list[Row]:
    """A row for every data set, column and system."""
    groups: dict[tuple[str, int, str], list[Cell]] = {}
    for cell in cells:
        at = experiment.columns.index(cell.column)
        groups.setdefault((cell.dataset, at, cell.system.name), []).append(cell)
    rows = []
    for (dataset, at, _), group in groups.items():
        ours = groups.get((dataset, at, OURS))
        rows.append(_row(experiment, group, ours, results))
    _mark_best(rows)
    return rows


def _row(
    experiment: Experiment,
    cells: Sequence[Cell],
    ours: Sequence[Cell] | None,
    results: Mapping[str, Result],
) -> Row:
    first, scores = cells[0], percent(results, cells)
    column, found = first.column, spread(scores)
    paper = paper_of(experiment, first.dataset, first.system, column.at)
    own = [results[cell.key] for cell in cells]
    return {
        "dataset": first.dataset,
        "axis": experiment.axis,
        "at": column.at,
        "curve": column.curve,
        "system": first.system.name,
        "seeds": len(cells),
        **found.row("score"),
        **_against_paper(found.mean, found.std, len(cells), paper),
        **_against_ours(scores, ours, results),
        "up": statistics.mean(result.up for result in own),
        "down": statistics.mean(result.down for result in own),
        "seconds": statistics.mean(result.seconds for result in own),
        **exposure_of(first),
        "raw": first.system.raw,
        "shows": first.system.shows,
    }


def paper_of(
    experiment: Experiment,
    dataset: str,
    system: System,
    at: Any,  # noqa: ANN401
) -> tuple[float, float | None] | None:
    """Mean and deviation that the paper gives for a cell; None where it gives none."""
    table = paper_figures().get(experiment.source, {}).get(dataset, {})
    if experiment.source == "lambda":
        short = system.paper.split()[0] if system.paper else ""
        if short not in table or at not in table["lambda"]:
            return None
        return table[short][table["lambda"].index(at)], None
    found = table.get(system.paper)
    if isinstance(found, dict):
        found = found.get(str(at))
    return (found[0], found[1]) if found else None


def _against_paper(
    mean: float | None, std: float | None, count: int, paper: tuple[float, float | None] | None
) -> Row:
    """The difference to the paper, and the chance of one as large without a reason (Welch)."""
    empty = {"paper": None, "paper_std": None, "difference": None, "p": None}
    if paper is None or mean is None:
        return empty
    figure, deviation = paper
    known = {"paper": figure, "paper_std": deviation, "difference": mean - figure, "p": None}
    if std is None or deviation is None:
        return known
    mine, theirs = std**2 / count, deviation**2 / PAPER_RUNS
    return {**known, "p": _welch(mean - figure, mine, theirs, count)}


def _welch(gap: float, mine: float, theirs: float, count: int) -> float:
    from scipy.special import stdtr

    if not mine + theirs:
        return 0.0 if gap else 1.0
    freedom = (mine + theirs) ** 2 / (mine**2 / (count - 1) + theirs**2 / (PAPER_RUNS - 1))
    return float(2 * stdtr(freedom, -abs(gap) / math.sqrt(mine + theirs)))


def _against_ours(
    scores: Sequence[float | None], ours: Sequence[Cell] | None, results: Mapping[str, Result]
) -> Row:
    """What a system has more than ours, paired where seeds are shared."""
    if ours is None:
        return spread([]).row("gain")
    pairs = zip(scores, percent(results, ours), strict=True)
    return spread([None if a is None or b is None else a - b for a, b in pairs]).row("gain")


def exposure_of(cell: Cell) -> Row:
    """What of the data is exchanged before training: vectors of a basis, columns of features."""
    needs = method_class(cell.settings.method).needs(cell.settings)
    return {
        "vectors": exchanged_vectors(cell.settings) if Krylov.name in needs else 0,
        "feature_sums": cell.settings.neighbour_hops if NeighbourSums.name in needs else 0,
    }


def _mark_best(rows: Sequence[Row]) -> None:
    """Say which row of a column is best in all, and which that reads no raw features."""
    for row in rows:
        column = [
            each
            for each in rows
            if all(each[key] == row[key] for key in ("dataset", "at", "curve"))
            and each["score_mean"] is not None
        ]
        for name, others in (
            ("best", column),
            ("best_private", [each for each in column if not each["raw"]]),
        ):
            top = max((each["score_mean"] for each in others), default=None)
            row[name] = any(each is row for each in others) and row["score_mean"] == top
