"""What the cells of an exported column mean: numbers as people write them, dates, or text."""

import re
from typing import TYPE_CHECKING, NamedTuple

from fedlap_app.graphs.tables import MISSING

if TYPE_CHECKING:
    import pandas as pd

_DATES = (
    "ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y", "%m/%d/%Y"
)  # fmt: skip
_DATE_LIKE = re.compile(r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([ T]\d{1,2}:\d\d.*)?")
_AROUND = r"(?i)^(?:[€$£¥]|EUR|USD|GBP|CHF)\s*|\s*(?:[€$£¥%]|EUR|USD|GBP|CHF)$"
_GAPS = "[\\s'\u2019\u00a0\u202f](?=\\d{3})"
_NAMES = 30  # different texts, one for each row, that are taken for names
_LACKING = (*MISSING, "-", "#n/a")


class Meaning(NamedTuple):
    """A column as `split` takes it, None where nobody can learn of it, and that in words."""

    column: "pd.Series | None"
    words: str


def meaning(column: "pd.Series", *, comma: bool, category: bool = False) -> Meaning:
    """What a column of features holds.

    Parameters
    ----------
    column
        Texts, "" where empty, or a column of Parquet.
    comma
        Whether its file separates columns otherwise, so that decimals may have a comma.
    category
        Take it as text, whatever it looks like.
    """
    if column.dtype.kind in "fiub" and not category:
        return _described(column.astype("float64"), "number")
    if column.dtype.kind == "M":
        return _described(_days(column), "date, in days")
    cells = texts(column)
    if not category:
        found = numbers(cells, comma=comma)
        if found is not None:
            return _described(found, "number")
        dates = _dates(cells)
        if dates is not None:
            return _described(dates, "date, in days")
    return _of_text(cells.where(cells != "", None))


def texts(column: "pd.Series") -> "pd.Series":
    """A column as texts, "" where there is nothing."""
    whole = column.convert_dtypes() if column.dtype.kind == "f" else column
    return whole.astype(object).where(column.notna(), "").astype(str)


def numbers(cells: "pd.Series", *, comma: bool) -> "pd.Series | None":
    """Numbers with NaN where there is none; None if a cell holds something else."""
    known = cells[~cells.str.lower().isin(_LACKING)]
    if known.empty:
        return None
    truths = known.str.lower().map({"true": "1", "false": "0"})
    bare = known if truths.isna().any() else truths
    bare = bare.str.replace(_AROUND, "", regex=True).str.replace(_GAPS, "", regex=True)
    bare = bare.str.replace("\u2212", "-")
    for decimal in (",", ".") if comma else (".", ","):
        thousands = "." if decimal == "," else ","
        if not bare.str.fullmatch(_written(re.escape(decimal), re.escape(thousands))).all():
            continue
        found = bare.str.replace(thousands, "").str.replace(decimal, ".").astype("float64")
        return found.reindex(cells.index)
    return None


def _written(decimal: str, thousands: str) -> str:
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{thousands}\d{{3}})+)"
    return rf"[-+]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][-+]?\d+)?"


def _dates(cells: "pd.Series") -> "pd.Series | None":
    """Days since 1970; None where a cell is no date, or could be one of two."""
    import pandas as pd

    known = cells[~cells.str.lower().isin(_LACKING)]
    if known.empty or not known.str.fullmatch(_DATE_LIKE).all():
        return None
    read = (pd.to_datetime(known, format=form, errors="coerce", utc=True) for form in _DATES)
    fit = [each for each in read if each.notna().all()]
    return _days(fit[0]).reindex(cells.index) if len(fit) == 1 else None


def _days(moments: "pd.Series") -> "pd.Series":
    import pandas as pd

    zone = "UTC" if moments.dt.tz is not None else None
    return (moments - pd.Timestamp(0, tz=zone)) / pd.Timedelta(days=1)


def _described(column: "pd.Series", words: str) -> Meaning:
    missing = int(column.isna().sum())
    if missing == len(column):
        return Meaning(None, "empty")
    return Meaning(column, f"{words}, {missing:,} missing" if missing else words)


def _of_text(cells: "pd.Series") -> Meaning:
    known = cells.dropna()
    different = known.nunique()
    if not different:
        return Meaning(None, "empty")
    if different == len(known) > _NAMES:
        return Meaning(None, "another text in every row")
    if different == 1 and len(known) == len(cells):
        return Meaning(None, f"the same text {known.iloc[0]!r} in every row")
    return _described(cells, "text" if different == 1 else f"{different:,} different texts")
