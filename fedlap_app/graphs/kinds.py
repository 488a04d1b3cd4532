"""Kinds of feature columns: what a table declares about them in ``org.toml``.

A column that nobody declares holds finite numbers. One that is declared as a ``number`` may lack
values, and gets a second column that says where; a ``category`` holds text, of which the most
frequent ones get a column each.
"""

from collections.abc import Mapping
from typing import Any

from fedlap_app.errors import DataError

NUMBER, CATEGORY = "number", "category"
KINDS = (NUMBER, CATEGORY)
SLOTS = 32
"""Columns that a category becomes: missing, other, and the most frequent ones."""

Kinds = tuple[str, ...]


def kinds_of(declared: object, names: tuple[str, ...]) -> Kinds:
    """Kind of every column, "" where none is declared; empty: none is declared at all."""
    if not isinstance(declared, Mapping) or not all(kind in KINDS for kind in declared.values()):
        raise DataError(
            f"kinds = {declared!r} is no table of columns and their kinds: write "
            'kinds = {age = "number", country = "category"}.'
        )
    stray = next((name for name in declared if name not in names), None)
    if stray is not None:
        raise DataError(
            f"kinds names {stray!r}, which is none of the features ({', '.join(names[:8])}): "
            "correct it or add it to features."
        )
    return tuple(declared.get(name, "") for name in names) if declared else ()


def check_kinds(kinds: Kinds, columns: int, categories: Any, nodes: int) -> None:  # noqa: ANN401
    """Refuse kinds that do not fit the columns, or texts that do not fit the kinds."""
    if kinds and len(kinds) != columns:
        raise DataError(f"There are {len(kinds)} kinds for {columns} features: give one for each.")
    unknown = next((kind for kind in kinds if kind not in ("", *KINDS)), None)
    if unknown is not None:
        raise DataError(f"There is no kind of feature {unknown!r}: take {' or '.join(KINDS)}.")
    count = kinds.count(CATEGORY)
    shape = (nodes, 0) if categories is None else tuple(categories.shape)
    if shape != (nodes, count):
        raise DataError(
            f"The categories have the shape {shape} for {nodes} nodes and {count} columns of "
            "categories: give each node a text in each of them."
        )


def num_inputs(kinds: Kinds, columns: int) -> int:
    """Columns that a model reads of so many features."""
    return columns + kinds.count(NUMBER) + (SLOTS - 1) * kinds.count(CATEGORY)
