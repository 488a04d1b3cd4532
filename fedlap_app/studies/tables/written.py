"""A table as CSV, JSON, Markdown and LaTeX."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedlap_app.methods.registry import WHOLE_GRAPH
from fedlap_app.store.files import write_shared
from fedlap_app.studies.report_files import write_csv

Report = Mapping[str, Any]
Row = Mapping[str, Any]


def write_all(report: Report, folder: Path) -> list[Path]:
    """Write every form; the files' names are that of the experiment."""
    name = folder / str(report["experiment"])
    write_csv(report, name.with_suffix(".csv"))
    for suffix, text in (
        (".json", json.dumps(report, indent=1)),
        (".md", markdown(report)),
        (".tex", latex(report)),
    ):
        write_shared(name.with_suffix(suffix), text.encode())
    return [name.with_suffix(suffix) for suffix in (".csv", ".json", ".md", ".tex")]


def markdown(report: Report) -> str:
    """Ours, then the paper's in brackets; the best in bold, the best without raw features *so*."""
    blocks = [f"## {report['title']}", _note(report)]
    for dataset in report["datasets"]:
        rows = [row for row in report["rows"] if row["dataset"] == dataset]
        heads = ["system", *_columns(rows), "MB up", "seconds", "exposure"]
        lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for system, own in _by_system(rows).items():
            cells = _cells(rows, own, _marked)
            lines.append(f"| {' | '.join([system, *cells, *_price(own)])} |")
        blocks += [f"### {dataset}", "\n".join(lines), *_said(rows)]
    return "\n\n".join(blocks) + "\n"


def latex(report: Report) -> str:
    """A tabular for each data set."""
    blocks = []
    for dataset in report["datasets"]:
        rows = [row for row in report["rows"] if row["dataset"] == dataset]
        columns = _columns(rows)
        lines = [
            rf"% {report['title']}: {dataset}, protocol {report['protocol']}",
            rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
            r"\toprule",
            rf"{_tex('system')} & {' & '.join(map(_tex, columns))} \\",
            r"\midrule",
        ]
        for system, own in _by_system(rows).items():
            lines.append(rf"{_tex(system)} & {' & '.join(_cells(rows, own, _marked_tex))} \\")
        blocks.append("\n".join([*lines, r"\bottomrule", r"\end{tabular}"]))
    return "\n\n".join(blocks) + "\n"


def _note(report: Report) -> str:
    return (
        f"Protocol `{report['protocol']}`, {report['seeds']} seeds: test score in percent, mean "
        "and deviation, in brackets the paper's mean and the difference (! where the chance of one "
        "as large is below 1 %). **Bold**: the best of a column; *italic*: the best that reads no "
        "raw features of others."
    )


def _columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(_column(row) for row in rows))


def _column(row: Row) -> str:
    place = f"{row['axis']} {row['at']}"
    return f"{row['curve']}, {place}" if row["curve"] else place


def _by_system(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["system"], []).append(row)
    return found


def _cells(rows: Sequence[Row], own: Sequence[Row], form: Callable[[Row], str]) -> list[str]:
    known = {_column(row): form(row) for row in own}
    return [known.get(column, "-") for column in _columns(rows)]


def _text(row: Row, between: str) -> str:
    if row["score_mean"] is None:
        return "-"
    std = "" if row["score_std"] is None else f"{between}{row['score_std']:.2f}"
    return f"{row['score_mean']:.2f}{std}"


def _marked(row: Row) -> str:
    text = _text(row, " ± ")
    mark = "**" if row["best"] else "*" if row["best_private"] else ""
    if row["paper"] is None:
        return f"{mark}{text}{mark}"
    sure = "!" if row["p"] is not None and row["p"] < 0.01 else ""
    return f"{mark}{text}{mark} ({row['paper']:.2f}, {row['difference']:+.2f}{sure})"


def _marked_tex(row: Row) -> str:
    text = f"${_text(row, chr(92) + 'pm ')}$"
    if row["best"]:
        return rf"\textbf{{{text}}}"
    return rf"\emph{{{text}}}" if row["best_private"] else text


def _tex(text: str) -> str:
    return text.replace("_", r"\_").replace("%", r"\%")


def _price(rows: Sequence[Row]) -> list[str]:
    up = max(row["up"] for row in rows) / 1e6
    seconds = max(row["seconds"] for row in rows)
    first = rows[0]
    shown = []
    if first["vectors"]:
        shown.append(f"{max(row['vectors'] for row in rows)} vectors")
    if first["feature_sums"]:
        shown.append(f"feature sums, {first['feature_sums']} hops")
    if first["shows"]:
        shown.append(first["shows"])
    if first["raw"]:
        shown.append("raw features")
    return [f"{up:.1f}", f"{seconds:.0f}", ", ".join(shown) or "models"]


def _said(rows: Sequence[Row]) -> list[str]:
    """Whatever beats ours, in a sentence for each column."""
    lines = []
    for column in _columns(rows):
        here = [row for row in rows if _column(row) == column and row["system"] != WHOLE_GRAPH]
        better = [
            f"{row['system']} ({row['gain_mean']:+.2f})"
            for row in here
            if row["gain_mean"] is not None and row["gain_mean"] > 0
        ]
        if better:
            lines.append(f"- {column}: above fedlap+, paired: {', '.join(better)}")
    return ["\n".join(lines)] if lines else []
