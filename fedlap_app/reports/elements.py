"""Pieces of a page: figures with a verdict, tables, sections. All text is escaped here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from fedlap_app.reports.charts import Chart, key_of

GOOD, FAIR, POOR, NEUTRAL = "good", "fair", "poor", "neutral"
_MARKS = {GOOD: "✓", FAIR: "!", POOR: "✗", NEUTRAL: "·"}
_NUMBER = re.compile(r"([+-]?[\d.,]+(e[+-]?\d+)?( %)?|none)?")
_MEASURE = re.compile(r"([+-]?[\d.,]+(?: (?:%|MB|points))?) (.+)")
_WORDS = {GOOD: "good", FAIR: "fair", POOR: "poor", NEUTRAL: "no verdict"}


@dataclass(frozen=True)
class Figure:
    """A number of the first screen.

    Attributes
    ----------
    question, value, verdict
        What it answers, the number, and what to make of it, a sentence.
    tone
        Good, fair, poor or neutral: a mark beside a colour, for those who do not see that.
    """

    question: str
    value: str
    verdict: str
    tone: str = NEUTRAL


@dataclass(frozen=True)
class Table:
    """Rows of text below a header; one that is folded opens on demand."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    caption: str = ""
    folded: bool = False


@dataclass(frozen=True)
class Words:
    """A paragraph, or several."""

    lines: Sequence[str]
    strong: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the page under a title of its own."""

    title: str
    pieces: Sequence["Chart | Table | Words"]


def figure_html(figure: Figure) -> str:
    """A card of the first screen."""
    number, unit = figure.value, ""
    if found := _MEASURE.fullmatch(figure.value):
        number, unit = found[1], f' <span class="unit">{escape(found[2])}</span>'
    return (
        f'<div class="figure {figure.tone}"><dt>{escape(figure.question)}</dt>'
        f'<dd class="value">{escape(number)}{unit}</dd>'
        f'<dd class="verdict"><span class="mark" aria-hidden="true">{_MARKS[figure.tone]}</span>'
        f'<span class="hidden">{_WORDS[figure.tone]}: </span>{_text(figure.verdict)}</dd></div>'
    )


def section_html(section: Section, number: int) -> str:
    """A section; its pieces in their order."""
    name = f"section-{number}"
    pieces = "\n".join(_piece(piece, f"{name}-{at}") for at, piece in enumerate(section.pieces))
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(section.title)}</h2>\n'
        f"{pieces}</section>"
    )


def table_html(table: Table) -> str:
    """A table that a narrow screen scrolls sideways; a column that says nothing is left out."""
    texts = [[str(each) for each in row] for row in table.rows]
    shown = [at for at in range(len(table.header)) if not texts or any(row[at] for row in texts)]
    numeric = {at for at in shown[1:] if all(_NUMBER.fullmatch(row[at]) for row in texts)}
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    label = escape(table.caption or ", ".join(map(str, table.header)), quote=True)
    head = "".join(
        f'<th scope="col"{_kind(at, numeric)}>{escape(str(table.header[at]))}</th>' for at in shown
    )
    rows = "\n".join(_row(row, shown, numeric) for row in texts)
    return (
        f'<div class="wide" role="region" aria-label="Table: {label}" tabindex="0"><table>{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table></div>"
    )


def _row(row: Sequence[str], shown: Sequence[int], numeric: set[int]) -> str:
    first, *rest = shown
    cells = "".join(f"<td{_kind(at, numeric)}>{escape(row[at])}</td>" for at in rest)
    return f'<tr><th scope="row">{escape(row[first])}</th>{cells}</tr>'


def _kind(at: int, numeric: set[int]) -> str:
    return ' class="number"' if at in numeric else ""


def _text(words: str) -> str:
    """A sentence; what stands between backticks is a command."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))


def _piece(piece: "Chart | Table | Words", name: str) -> str:
    if isinstance(piece, Table) and piece.folded:
        plain = table_html(replace(piece, folded=False))
        return f"<details data-print><summary>{escape(piece.caption)}</summary>{plain}</details>"
    if isinstance(piece, Table):
        return table_html(piece)
    if isinstance(piece, Words):
        kind = ' class="strong"' if piece.strong else ""
        return "\n".join(f"<p{kind}>{_text(line)}</p>" for line in piece.lines)
    return _chart(piece, name)


def _chart(chart: Chart, name: str) -> str:
    table = table_html(Table(chart.header, chart.rows, f"{chart.title}, the numbers"))
    return (
        f'<figure id="{name}"><figcaption id="{name}-title">{escape(chart.title)}</figcaption>'
        f"{_filter(chart, name)}"
        f'<div class="chart" data-chart="{name}" role="img" aria-labelledby="{name}-title '
        f'{name}-says"></div><p class="says" id="{name}-says">{escape(chart.says)}</p>'
        f"<details><summary>The numbers as a table</summary>{table}</details>"
        f'<script type="application/json" data-spec="{name}">{chart.to_json()}</script></figure>'
    )


def _filter(chart: Chart, name: str) -> str:
    """Check boxes that show and hide series, and are the legend."""
    if len(chart.series) < 2:
        return ""
    boxes = "".join(
        f'<label><input type="checkbox" checked data-filter="{name}" '
        f'value="{escape(each, quote=True)}">{_key(chart, at)} {escape(each)}</label>'
        for at, each in enumerate(chart.series)
    )
    return f"<fieldset><legend>Show</legend>{boxes}</fieldset>"


def _key(chart: Chart, at: int) -> str:
    """How a series is drawn."""
    colour, dashes = key_of(at)
    stroke = 'stroke-width="9"'
    if chart.dashed:
        stroke = f'stroke-dasharray="{dashes}" stroke-width="2.5"'
    line = f'<line x1="1" y1="6" x2="27" y2="6" stroke="{colour}" {stroke}/>'
    return f'<svg class="key" viewBox="0 0 28 12" aria-hidden="true">{line}</svg>'
