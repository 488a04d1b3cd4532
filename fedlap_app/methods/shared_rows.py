"""Rows that organisations learn together: the server knows them by opaque names only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import RunError
from fedlap_app.seeds import seed_of
from fedlap_app.sums.job.row_keys import KEY_BYTES

MOST_ROWS = 2**24
START_SPREAD = 0.05
Table = NDArray[np.float32]
Names = NDArray[np.bytes_]


@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of each member are in the table of all rows.

    Attributes
    ----------
    job
        The job in which the members named their rows.
    of
        For each member the places of its rows, in its own order.
    holders
        How many members hold each row.
    """

    job: str
    of: Mapping[str, NDArray[np.int64]]
    holders: NDArray[np.int64]

    @property
    def shared(self) -> int:
        """Number of rows that more than one member holds."""
        return int(np.count_nonzero(self.holders > 1))


def places_of(job: str, names: Mapping[str, bytes]) -> Places:
    """Places by the names of each member's rows, one after the other, in its own order."""
    listed = {member: _split(member, data) for member, data in sorted(names.items())}
    everyone, places = np.unique(np.concatenate([*listed.values()]), return_inverse=True)
    ends = np.cumsum([len(some) for some in listed.values()])[:-1]
    of = dict(zip(listed, np.split(places, ends), strict=True))
    return Places(job, of, np.bincount(places, minlength=len(everyone)))


def start_table(count: int, width: int, seed: int) -> Table:
    """The first rows, which follow from the seed."""
    generator = np.random.default_rng(seed_of(seed, "rows"))
    return np.float32(START_SPREAD) * generator.standard_normal((count, width), dtype=np.float32)


def average(places: Places, table: Table, copies: Mapping[str, NDArray[Any]]) -> Table:
    """A table of the means of the copies of each row, added in the order of names.

    A row whose holders are all absent stays as it is.
    """
    total = np.zeros(table.shape)
    count = np.zeros(len(table), dtype=np.int64)
    for member, where in places.of.items():
        if member in copies:
            total[where] += _checked(member, copies[member], (len(where), table.shape[1]))
            count[where] += 1
    mean = (total / np.maximum(count, 1)[:, None]).astype(np.float32)
    return np.where(count[:, None] > 0, mean, table)


def _checked(member: str, rows: NDArray[Any], expected: tuple[int, int]) -> NDArray[Any]:
    if rows.shape != expected or rows.dtype.kind != "f":
        raise RunError(
            f"{member} returned rows of shape {rows.shape} and type {rows.dtype} where "
            f"{expected} floats were sent: let all organisations run one version"
        )
    if not np.isfinite(rows).all():
        raise RunError(
            f"{member} returned rows with values that are not finite numbers: start again "
            "with a lower learning-rate"
        )
    return rows


def _split(member: str, data: bytes) -> Names:
    """Names of a member's rows; a name that comes twice is refused."""
    if len(data) > KEY_BYTES * MOST_ROWS:
        raise RunError(
            f"{member} named {len(data) // KEY_BYTES} rows where {MOST_ROWS} are the most: take a "
            "method without learned rows"
        )
    if len(data) % KEY_BYTES or not data:
        raise RunError(
            f"{member} named its rows with {len(data)} bytes, no multiple of {KEY_BYTES}: let all "
            "organisations run one version"
        )
    names: Names = np.frombuffer(data, dtype=f"S{KEY_BYTES}")
    if len(np.unique(names)) < len(names):
        raise RunError(f"{member} named two of its rows alike: start the run again")
    return names
