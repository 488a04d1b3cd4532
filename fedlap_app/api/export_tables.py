"""Exported tables as they are written: any separator and encoding, with or without a first line."""

import gzip
import io
import re
import warnings
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fedlap_app.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

_SEPARATORS = (",", ";", "\t", "|")
_BLANKS = r"\s+"
_REMARKS = ("#", "%")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_WORKBOOK = b"PK\x03\x04"
_ENDS = ("source", "target", "weight")


class Export(NamedTuple):
    """A table, where its first row stands in the file, and whether decimals may have a comma."""

    path: Path
    cells: "pd.DataFrame"
    first: int
    comma: bool = False

    def where(self, row: int) -> str:
        """File and line of a row, to begin a sentence with."""
        return f"{self.path}, line {row + self.first}"


def read_export(path: Path) -> Export:
    """Read a table; cells of a file of text are texts without outer blanks, "" where empty."""
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            return Export(path, pd.read_parquet(path), 1)
        text = _text(path)
        lines = text.splitlines()
        remarks = next((at for at, line in enumerate(lines) if not _is_remark(line)), len(lines))
        separator = _separator(lines[remarks] if remarks < len(lines) else "")
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            cells = pd.read_csv(
                io.StringIO(text), sep=separator, skiprows=remarks, dtype=str,
                keep_default_na=False, index_col=False, skipinitialspace=True,
            )  # fmt: skip
    except pd.errors.ParserWarning:
        raise DataError(
            f"{path} has rows with more cells than its first line has names: name every column, "
            "and put texts that hold the separator into quotation marks"
        ) from None
    except (OSError, ValueError) as error:
        why = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise DataError(
            f"{path} cannot be read as a table ({why}): give CSV with one column name for each "
            "column, or Parquet"
        ) from None
    cells = cells.fillna("").apply(lambda column: column.str.strip())
    cells.columns = cells.columns.str.strip()
    return Export(path, cells, remarks + 2, separator != ",")


def with_ends(links: Export, nodes: Collection[str]) -> Export:
    """Name the columns of a bare list of edges, whose first line is an edge, too."""
    import pandas as pd

    first = list(links.cells.columns)
    if len(first) not in (2, 3) or not set(first[:2]) <= set(nodes):
        return links
    names = dict(zip(first, _ENDS, strict=False))
    edge = pd.DataFrame([first], columns=first)
    cells = pd.concat([edge, links.cells], ignore_index=True).rename(columns=names)
    return links._replace(cells=cells, first=links.first - 1)


def _text(path: Path) -> str:
    """The text of a file; what is not Unicode is what spreadsheets save in Western countries."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if content.startswith(_WORKBOOK):
        raise ValueError("it is a workbook or an archive, save the sheet as CSV")
    if content.startswith(_UTF16):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _is_remark(line: str) -> bool:
    return not line.strip() or line.startswith(_REMARKS)


def _separator(line: str) -> str:
    """What stands most often between the names of the columns."""
    bare = re.sub(r'"[^"]*"', "", line)
    best = max(_SEPARATORS, key=bare.count)
    if bare.count(best):
        return best
    return _BLANKS if len(bare.split()) > 1 else ","
