"""Tables of text and numbers in CSV or Parquet files, read exactly as they are written.

Text stays text: ``007``, ``NA`` and ``null`` are ids like any other.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import TEXT_LIMIT, Floats, Ints, Strings
from fedlap_app.graphs.kinds import CATEGORY, NUMBER
from fedlap_app.graphs.parquet import read_parquet, write_parquet

FORMATS = ("csv", "parquet")
MISSING = ("", "na", "n/a", "nan", "null", "none")
_CELLS = 1_000_000  # cells of a CSV file that are converted at a time


@dataclass(frozen=True)
class Table:
    """Columns of a file.

    Attributes
    ----------
    path : the file.
    text : columns of text; an absent optional column is all empty.
    numbers : (rows, columns) the numeric columns, in the order asked for.
    lines : where each row is in the file.
    unit : what ``lines`` counts: line or row.
    """

    path: Path
    text: Mapping[str, Strings]
    numbers: Floats
    lines: Ints
    unit: str

    def where(self, row: int | np.integer[Any]) -> str:
        """File and place of a row, to begin a sentence with."""
        return f"{self.path}, {self.unit} {self.lines[row]}"


def find_table(folder: Path, stem: str) -> Path:
    """The one file ``stem``.csv or ``stem``.parquet of a folder."""
    found = [path for path in (folder / f"{stem}.{end}" for end in FORMATS) if path.is_file()]
    if not found:
        raise DataError(f"There is no {stem}.csv or {stem}.parquet in {folder}: add one.")
    if len(found) > 1:
        raise DataError(f"{folder} has both {stem}.csv and {stem}.parquet: keep one.")
    return found[0]


def column_names(path: Path) -> list[str]:
    """Names of the columns of a table."""
    if path.suffix == ".parquet":
        return read_parquet(path).columns
    return next(_csv_chunks(path, 1))[0]


def read_table(
    path: Path,
    text: Sequence[str],
    numeric: Sequence[str],
    optional: Sequence[str] = (),
    lacking: Sequence[str] = (),
) -> Table:
    """Read some columns of a file.

    Parameters
    ----------
    path : a ``.csv`` or ``.parquet`` file.
    text : columns of text.
    numeric : columns of finite numbers.
    optional : those of ``text`` that may be absent.
    lacking : those of ``numeric`` that may lack values, which are NaN then.
    """
    if path.suffix == ".parquet":
        return _from_parquet(path, text, numeric, optional)
    pieces: list[Floats] = []
    columns: dict[str, list[str]] = {name: [] for name in text}
    lines: list[int] = []
    wanted = [*text, *numeric]
    for header, rows, numbers in _csv_chunks(path, max(1, _CELLS // max(1, len(wanted)))):
        _require(path, header, wanted, optional)
        for name in text:
            at = header.index(name) if name in header else None
            columns[name] += [""] * len(rows) if at is None else map(itemgetter(at), rows)
        places = [header.index(name) for name in numeric]
        pieces.append(_numbers(path, rows, numbers, places, numeric, lacking))
        lines += numbers
    text_columns = {name: _text(path, name, values, lines) for name, values in columns.items()}
    table_numbers = np.concatenate(pieces)
    return Table(path, text_columns, table_numbers, np.asarray(lines, dtype=np.int64), "line")


def _csv_chunks(path: Path, size: int) -> Iterator[tuple[list[str], list[list[str]], list[int]]]:
    """Header, rows and their line numbers, at least once even without rows."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            header = [name.strip() for name in next(reader, [])]
            if not any(header):
                raise DataError(f"{path} is empty: its first line must name the columns.")
            rows: list[list[str]] = []
            lines: list[int] = []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise DataError(
                        f"{path}, line {reader.line_num} has {len(row)} columns, the first line "
                        f"has {len(header)}: make them the same."
                    )
                rows.append(row)
                lines.append(reader.line_num)
                if len(rows) == size:
                    yield header, rows, lines
                    rows, lines = [], []
            yield header, rows, lines
    except UnicodeDecodeError:
        raise DataError(f"{path} is not UTF-8 text: save it as CSV in UTF-8.") from None
    except csv.Error as error:
        where = f"{path}, line {reader.line_num}"
        raise DataError(f"{where} is not valid CSV ({error}): correct it.") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}): check the file.") from None


def _require(
    path: Path, header: Sequence[str], wanted: Sequence[str], optional: Sequence[str]
) -> None:
    for name in wanted:
        if header.count(name) > 1:
            raise DataError(f"{path} has two columns {name!r}: keep one.")
        if name not in header and name not in optional:
            shown = ", ".join(header[:12])[:200]
            raise DataError(
                f"{path} has no column {name!r}, only {shown!r}: add it, and separate columns "
                "by commas."
            )


def _text(path: Path, name: str, values: list[str], lines: Sequence[int]) -> Strings:
    for value, line in zip(values, lines, strict=True):
        if len(value) > TEXT_LIMIT:
            raise DataError(
                f"{path}, line {line}: {name} has {len(value)} characters: use at most "
                f"{TEXT_LIMIT}."
            )
    return np.asarray(values, dtype=np.str_)


def _numbers(
    path: Path,
    rows: list[list[str]],
    lines: list[int],
    places: list[int],
    names: Sequence[str],
    lacking: Sequence[str] = (),
) -> Floats:
    if not rows or not places:
        return np.empty((len(rows), len(places)))
    cells = [[row[place] for place in places] for row in rows]
    for column in (at for at, name in enumerate(names) if name in lacking):
        for row in cells:
            if row[column].strip().lower() in MISSING:
                row[column] = "nan"
    try:
        return np.array(cells, dtype=np.str_).astype(np.float64)
    except ValueError:
        for row, line in zip(cells, lines, strict=True):
            for value, name in zip(row, names, strict=True):
                if not _is_number(value):
                    raise DataError(
                        f"{path}, line {line}: {name} = {value!r} is not a number: write one "
                        f"like 1.5{_otherwise(value, name)}."
                    ) from None
        raise


def _otherwise(value: str, name: str) -> str:
    """What else a cell may be that is no number."""
    kind = NUMBER if value.strip().lower() in MISSING else CATEGORY
    what = "may lack values" if kind == NUMBER else "holds text"
    return f', or say in org.toml that the column {what}: kinds = {{{name} = "{kind}"}}'


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _from_parquet(
    path: Path, text: Sequence[str], numeric: Sequence[str], optional: Sequence[str]
) -> Table:
    content = read_parquet(path)
    _require(path, content.columns, [*text, *numeric], optional)
    rows = np.arange(1, content.num_rows + 1)
    columns = {
        name: content.text(name)
        if name in content.columns
        else np.full(content.num_rows, "", dtype=np.str_)
        for name in text
    }
    numbers = [content.numbers(name) for name in numeric]
    stacked = np.stack(numbers, axis=1) if numbers else np.empty((content.num_rows, 0))
    return Table(path, columns, stacked, rows, "row")


def write_table(folder: Path, stem: str, columns: Mapping[str, Any], fmt: str) -> None:
    """Write named columns of equal length to ``stem``.csv or ``stem``.parquet."""
    for other in FORMATS:
        (folder / f"{stem}.{other}").unlink(missing_ok=True)
    path = folder / f"{stem}.{fmt}"
    if fmt == "parquet":
        write_parquet(path, columns)
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        # str() of a float32 is the shortest text that reads back as the same number.
        texts = (_written(np.asarray(column)) for column in columns.values())
        writer.writerows(zip(*texts, strict=True))


def _written(column: NDArray[Any]) -> list[str]:
    """Cells of a column; a missing number is empty."""
    found: list[str] = column.astype(np.str_).tolist()
    if column.dtype.kind == "f" and np.isnan(column).any():
        return ["" if cell == "nan" else cell for cell in found]
    return found
