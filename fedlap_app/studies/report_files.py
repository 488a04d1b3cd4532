"""Measurements as aligned text, as a CSV file and as a chart, for all benchmarks alike."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedlap_app.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg", ".pdf")

Column = tuple[str, str, str]
"""Key of a row, title, and the form of a cell such as ``{:>8}``."""


def lines_of(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
    cell: Callable[[str, Any], str],
) -> list[str]:
    """Titles, and a line for each row; `cell` writes the value of a key."""
    titles = " ".join(form.format(title) for _, title, form in columns)
    lines = [" ".join(form.format(cell(key, row[key])) for key, _, form in columns) for row in rows]
    return [titles.rstrip(), *(line.rstrip() for line in lines)]


def write_csv(report: Mapping[str, Any], path: Path) -> None:
    """All rows, with what they have in common in front."""
    shared = {k: v for k, v in report.items() if not isinstance(v, list | dict)}
    rows = [{**shared, **row} for row in report["rows"]]
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    except OSError as error:
        raise _unwritable(path, error) from None


def check_chart(path: Path) -> None:
    """Refuse a file that no chart can be written to, because of its suffix or its folder."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ConfigError(
            f"{path.name} cannot be drawn: let it end in one of {', '.join(_SUFFIXES)}"
        )
    check_folder(path)


def check_folder(path: Path) -> None:
    """Refuse a file whose folder does not exist, before hours of work for it."""
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path} cannot be written (there is no such folder): name another file")


def save_chart(figure: "Figure", path: Path) -> None:
    """Write a figure; the suffix of the file says its form."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{path} cannot be written ({error.strerror}): name another file")
