"""Parquet files, through pyarrow where it is installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import TEXT_LIMIT, Floats, Strings


@dataclass(frozen=True)
class ParquetContent:
    """A Parquet file in memory, with the conversions that tables need."""

    path: Path
    table: Any

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.table.column_names)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def text(self, name: str) -> Strings:
        """Column of text; a missing value is an empty string."""
        import pyarrow as pa

        column = self.table.column(name)
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_null(kind) or column.null_count == len(column):
            return np.full(self.num_rows, "", dtype=np.str_)
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(
                f"{self.path}: the column {name!r} holds {column.type}, not text: write it as "
                "strings, so that leading zeros survive."
            )
        values = ["" if value is None else value for value in column.to_pylist()]
        longest = max(map(len, values), default=0)
        if longest > TEXT_LIMIT:
            raise DataError(
                f"{self.path}: {name} has an entry of {longest} characters: use at most "
                f"{TEXT_LIMIT}."
            )
        return np.asarray(values, dtype=np.str_)

    def numbers(self, name: str) -> Floats:
        """Column of numbers; a missing value is NaN."""
        import pyarrow as pa

        column = self.table.column(name)
        kind = column.type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise DataError(
                f"{self.path}: the column {name!r} holds {kind}, not numbers: write numbers."
            )
        return np.asarray(column.to_numpy(), dtype=np.float64)


def _pyarrow(path: Path) -> Any:  # noqa: ANN401
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{path} needs pyarrow: install it, or use CSV files.") from None
    return pyarrow


def read_parquet(path: Path) -> ParquetContent:
    """Read a whole file."""
    arrow = _pyarrow(path)
    try:
        return ParquetContent(path, arrow.parquet.ParquetFile(path).read())
    except (arrow.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path} is not a readable Parquet file ({reason}): write it again."
        ) from None


def write_parquet(path: Path, columns: Mapping[str, Any]) -> None:
    """Write named columns of equal length."""
    arrow = _pyarrow(path)
    arrays = {}
    for name, column in columns.items():
        values = np.asarray(column)
        is_text = values.dtype.kind == "U"
        arrays[name] = arrow.array(values.tolist(), arrow.string()) if is_text else values
    arrow.parquet.write_table(arrow.table(arrays), path)
