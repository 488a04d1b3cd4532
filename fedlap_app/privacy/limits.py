"""The table ``[consent]`` of an organisation's ``org.toml``: what it allows at most."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fedlap_app.errors import DataError
from fedlap_app.graphs.organisation import FILE, parse_file
from fedlap_app.knobs import key_of, nearest
from fedlap_app.secure.choice import BACKENDS
from fedlap_app.spectral.operators import KINDS

TABLE = "consent"


@dataclass(frozen=True)
class Limits:
    """An organisation's limits; None: it has not set this one.

    Attributes
    ----------
    most_vectors
        Vectors exchanged since its graph last changed, over all jobs together.
    least_pinned_partners
        Other organisations of a run whose fingerprint it has pinned.
    largest_auc
        AUC of the paper's worst-case attacker on the edges among its own nodes.
    backends, operators
        What a run may use.
    hide_topology
        True: a run must hide who shares edges with whom.
    """

    most_vectors: int | None = None
    least_pinned_partners: int | None = None
    largest_auc: float | None = None
    backends: tuple[str, ...] | None = None
    operators: tuple[str, ...] | None = None
    hide_topology: bool | None = None


NO_LIMITS = Limits()


def read_limits(folder: Path) -> Limits:
    """Limits of the organisation folder; none when its ``org.toml`` has no such table."""
    path = folder / FILE
    table = parse_file(path).get(TABLE, {})
    if not isinstance(table, dict):
        raise DataError(f"{path}: {TABLE} is not a table: write [{TABLE}] and the limits below it.")
    try:
        return parse_limits(table)
    except DataError as error:
        raise DataError(f"{path}, [{TABLE}]: {error}") from None


def parse_limits(table: Mapping[str, Any]) -> Limits:
    """Check the keys and values of the table."""
    known = {key_of(entry.name): entry.name for entry in fields(Limits)}
    values = {}
    for key, value in table.items():
        if key not in known:
            raise DataError(f"unknown limit {key!r}: the nearest is {nearest(key, known)!r}.")
        values[known[key]] = _READERS[known[key]](key, value)
    return Limits(**values)


def _count(key: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise DataError(f"{key} = {value!r} is not a whole number from 0: write `{key} = 100`.")
    return value


def _auc(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.5 <= value <= 1.0:
        raise DataError(
            f"{key} = {value!r} is not a number from 0.5 (the attacker guesses) to 1 (it finds "
            f"every edge): write `{key} = 0.75`."
        )
    return float(value)


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise DataError(f"{key} = {value!r} is neither true nor false: write `{key} = true`.")
    return value


def _some_of(choices: tuple[str, ...]) -> Callable[[str, object], tuple[str, ...]]:
    def read(key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not value:
            raise DataError(
                f'{key} = {value!r} is not a list of names: write `{key} = ["{choices[0]}"]`.'
            )
        for name in value:
            if name not in choices:
                raise DataError(
                    f"{key} names {name!r}: the nearest valid one is "
                    f"{nearest(str(name), choices)!r}."
                )
        return tuple(value)

    return read


_READERS: dict[str, Callable[[str, object], Any]] = {
    "most_vectors": _count,
    "least_pinned_partners": _count,
    "largest_auc": _auc,
    "backends": _some_of(BACKENDS),
    "operators": _some_of(KINDS),
    "hide_topology": _flag,
}
