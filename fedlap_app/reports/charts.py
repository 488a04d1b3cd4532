"""Charts as Vega-Lite specifications; Vega, which draws them, comes with the page."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
# Each has a contrast of at least 3 to both the light and the dark ground.
COLOURS = ("#2f7ed8", "#c9650c", "#278f63", "#b94a7c", "#8560cf", "#84792b", "#5f7d8c", "#c0453c")
_DASHES = ((1, 0), (7, 3), (2, 3), (9, 3, 2, 3))
_SOURCE = "source"
_HEIGHT = 260
_CONFIG = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.14,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "tickCount": 10,
    },
    "text": {"color": "currentColor"},
    "rule": {"color": "currentColor"},
}
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Axis:
    """A field, the words beside its axis, and how numbers on it are written.

    `limits` hold whatever the data; `kind` is that of Vega-Lite.
    """

    field: str
    title: str
    form: str = ""
    limits: tuple[float, float] | None = None
    kind: str = "quantitative"
    zero: bool = False
    logarithmic: bool = False

    def encoding(self) -> dict[str, Any]:
        """The channel."""
        axis: dict[str, Any] = {"title": self.title}
        if self.form:
            axis["format"] = self.form
        if self.kind == "nominal":
            axis["labelAngle"] = 0
            return {"field": self.field, "type": self.kind, "axis": axis, "sort": None}
        if self.form == "d":
            axis["tickMinStep"] = 1
        scale: dict[str, Any] = {"type": "log"} if self.logarithmic else {"zero": self.zero}
        scale["nice"] = not (self.logarithmic or self.form == "d")
        if self.limits:
            scale["domain"] = list(self.limits)
        return {"field": self.field, "type": self.kind, "axis": axis, "scale": scale}


@dataclass(frozen=True)
class Chart:
    """A chart with the same in words and as a table.

    Attributes
    ----------
    title, says
        What it shows, and what there is to see, for those who cannot.
    spec
        The specification.
    header, rows
        The table.
    by, series
        Field whose values can be shown and hidden, and these values.
    dashed
        Whether they differ in dashes beside their colours.
    """

    title: str
    says: str
    spec: Mapping[str, Any]
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    by: str = ""
    series: Sequence[str] = field(default=())
    dashed: bool = False

    def to_json(self) -> str:
        """The specification; nothing in it can end the element that it stands in."""
        text = json.dumps({**self.spec, "usermeta": {"by": self.by}}, allow_nan=False)
        return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def lines(
    title: str,
    says: str,
    rows: Sequence[Row],
    x: Axis,
    y: Axis,
    by: str,
    *,
    marks: Sequence[Mapping[str, Any]] = (),
) -> Chart:
    """A line for each value of the field `by`; `marks` are further layers."""
    kept = _finite(rows, x, y)
    series = list(dict.fromkeys(str(row[by]) for row in kept))
    layer = {
        "mark": {"type": "line", "point": len(kept) < 60, "strokeWidth": 2},
        "encoding": {**_both(x, y), **_coloured(by, series, dashed=True)},
    }
    found = _table(kept, x, y, by)
    return Chart(title, says, _spec(kept, [layer, *marks]), *found, by, series, dashed=True)


def key_of(at: int) -> tuple[str, str]:
    """Colour and dashes of a series by its number."""
    return COLOURS[at % len(COLOURS)], " ".join(map(str, _DASHES[at % len(_DASHES)]))


def bars(
    title: str,
    says: str,
    rows: Sequence[Row],
    x: Axis,
    y: Axis,
    by: str,
    *,
    interval: tuple[str, str] | None = None,
) -> Chart:
    """Bars side by side for each value of `by`; `interval` names fields of its ends."""
    kept = _finite(rows, x, y)
    series = list(dict.fromkeys(str(row[by]) for row in kept))
    offset = {} if by in (x.field, y.field) else {"yOffset": {"field": by, "sort": None}}
    layers: list[dict[str, Any]] = [
        {"mark": "bar", "encoding": {**_both(x, y), **offset, **_coloured(by, series)}}
    ]
    if interval:
        ends = {"x": {"field": interval[0], "type": "quantitative"}, "x2": {"field": interval[1]}}
        layers.append(
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {**_both(x, y), **ends}}
        )
    groups = len({row[y.field] for row in kept})
    spec = _spec(kept, layers, 30 + groups * (30 if not offset else 14 * len(series) + 8))
    return Chart(title, says, spec, *_table(kept, x, y, by), by, series)


def points(title: str, says: str, rows: Sequence[Row], x: Axis, y: Axis, by: str) -> Chart:
    """A dot for each row, coloured by a field; the table counts them."""
    kept = _finite(rows, x, y)
    series = sorted({str(row[by]) for row in kept})
    layer = {
        "mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.7},
        "encoding": {**_both(x, y), **_coloured(by, series)},
    }
    counts = [(each, sum(str(row[by]) == each for row in kept)) for each in series]
    return Chart(title, says, _spec(kept, [layer], 380), (by, "nodes"), counts, by, series)


def heat(
    title: str, says: str, rows: Sequence[Row], x: Axis, y: Axis, count: str, share: str
) -> Chart:
    """A matrix: colour by share, the count written into the cell."""
    where = _both(x, y)
    ground = {
        "field": share,
        "type": "quantitative",
        "scale": {"domain": [0, 1], "range": ["#e8eef6", "#174a86"]},
        "legend": None,
    }
    dark = f"datum['{share}'] > 0.5"
    layers: list[dict[str, Any]] = [
        {"mark": "rect", "encoding": {**where, "color": ground}},
        {
            "mark": {"type": "text", "fontSize": 13},
            "encoding": {
                **where,
                "text": {"field": count, "type": "quantitative"},
                "color": {"condition": {"test": dark, "value": "#fff"}, "value": "#111"},
            },
        },
    ]
    spec = _spec(rows, layers, 36 * len({row[y.field] for row in rows}))
    table = [(row[y.field], row[x.field], row[count]) for row in rows]
    return Chart(title, says, spec, (y.title, x.title, count), table)


def upright(value: float, words: str) -> list[dict[str, Any]]:
    """A vertical line at a value of the x axis, with words above it."""
    data = {"values": [{"at": value, "words": words}]}
    at = {"x": {"field": "at", "type": "quantitative"}}
    label = {"type": "text", "align": "center", "baseline": "bottom", "dy": -4, "fontSize": 12}
    return [
        {"data": data, "mark": {"type": "rule", "strokeDash": [5, 4]}, "encoding": at},
        {
            "data": data,
            "mark": label,
            "encoding": {**at, "y": {"value": 0}, "text": {"field": "words"}},
        },
    ]


def dots(x: Axis, y: Axis, by: str, marked: str) -> dict[str, Any]:
    """A dot on every line where the field `marked` is true."""
    return {
        "transform": [{"filter": f"datum['{marked}']"}],
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "encoding": {**_both(x, y), "color": {"field": by, "type": "nominal"}},
    }


def _both(x: Axis, y: Axis) -> dict[str, Any]:
    return {"x": x.encoding(), "y": y.encoding()}


def _coloured(by: str, series: Sequence[str], *, dashed: bool = False) -> dict[str, Any]:
    """Colours that stay with a series when others are hidden; dashes for those who see none."""
    if len(series) <= 1:
        return {"color": {"value": COLOURS[0]}}

    def channel(values: Sequence[object]) -> dict[str, Any]:
        chosen = [values[at % len(values)] for at in range(len(series))]
        scale = {"domain": list(series), "range": chosen}
        # The check boxes above a chart are its legend.
        return {"field": by, "type": "nominal", "scale": scale, "legend": None}

    found = {"color": channel(COLOURS)}
    if dashed:
        found["strokeDash"] = channel([list(each) for each in _DASHES])
    return found


def _spec(rows: Sequence[Row], layers: Sequence[Mapping[str, Any]], height: int = _HEIGHT) -> Any:  # noqa: ANN401 - JSON
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"name": _SOURCE, "values": [dict(row) for row in rows]},
        "layer": list(layers),
        "config": _CONFIG,
    }


def _finite(rows: Sequence[Row], x: Axis, y: Axis) -> list[Row]:
    """Rows with a number on both axes."""
    return [row for row in rows if _known(row.get(x.field)) and _known(row.get(y.field))]


def _known(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and not math.isfinite(value))


def _table(
    rows: Sequence[Row], x: Axis, y: Axis, by: str
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Header and rows of the numbers; the field that names a row comes first."""
    axes = sorted((x, y), key=lambda axis: axis.kind != "nominal")
    shown = [axis for axis in axes if axis.field != by]
    header = (by, *(axis.title or axis.field for axis in shown))
    return header, [(row[by], *(_shown(row[axis.field]) for axis in shown)) for row in rows]


def _shown(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value
