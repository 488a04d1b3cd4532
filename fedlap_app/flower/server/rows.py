"""Rows that organisations learn together: the server knows them by opaque names only."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from flwr.app import ArrayRecord, RecordDict
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.grids.member_grid import Member
from fedlap_app.flower.records import ReadInPlace, to_arrays
from fedlap_app.seeds import seed_of
from fedlap_app.sums.job.row_keys import KEY_BYTES

RECORD = "rows"
MOST_ROWS = 2**24
START_SPREAD = 0.05
Table = NDArray[np.float32]
Names = NDArray[np.bytes_]


class Luggage(Protocol):
    """What travels beside the global model, to each member its own."""

    def pack(self, member: Member, content: RecordDict) -> RecordDict:
        """The content of a message with what is for this member."""

    def unpack(self, members: Sequence[Member], contents: Sequence[RecordDict]) -> None:
        """Take out of the replies, which come in the order of the members, what is not model."""

    def restart(self, seed: int) -> None:
        """Begin a training from a fresh state."""

    def snapshot(self) -> object:
        """The state that goes with the global model that was sent last."""

    def restore(self, snapshot: object) -> None:
        """Go back to a snapshot."""


class NoLuggage:
    """Nothing but the model travels."""

    def pack(self, member: Member, content: RecordDict) -> RecordDict:
        """The content as it is."""
        return content

    def unpack(self, members: Sequence[Member], contents: Sequence[RecordDict]) -> None:
        """Leave the replies as they are."""

    def restart(self, seed: int) -> None:
        """Nothing to begin anew."""

    def snapshot(self) -> object:
        """Nothing to remember."""
        return None

    def restore(self, snapshot: object) -> None:
        """Nothing to go back to."""


class SharedRows:
    """One row a node; each member gets and returns its own ones, and copies are averaged.

    Parameters
    ----------
    job : str
        The job in which the members named their rows.
    names : Mapping[str, bytes]
        For each member the names of its rows, one after the other, in its own order.
    width : int
        Length of a row.
    seed : int
        The first rows follow from it.
    """

    def __init__(self, job: str, names: Mapping[str, bytes], *, width: int, seed: int) -> None:
        self._job = job
        listed = {member: _split(member, data) for member, data in sorted(names.items())}
        everyone, places = np.unique(np.concatenate([*listed.values()]), return_inverse=True)
        ends = np.cumsum([len(some) for some in listed.values()])[:-1]
        self._places = dict(zip(listed, np.split(places, ends), strict=True))
        self._holders = np.bincount(places, minlength=len(everyone))
        self._table: Table = np.empty((len(everyone), width), dtype=np.float32)
        self.restart(seed)

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self._table)

    @property
    def shared(self) -> int:
        """Number of rows that more than one member holds."""
        return int(np.count_nonzero(self._holders > 1))

    def rows_of(self, member: str) -> Table:
        """Rows of a member, in its own order."""
        return self._table[self._places[member]]

    def average(self, copies: Mapping[str, NDArray[np.floating]]) -> None:
        """Replace every row by the mean of its copies, added in the order of names.

        A row whose holders are all absent stays as it is.
        """
        total = np.zeros(self._table.shape)
        count = np.zeros(len(self._table), dtype=np.int64)
        for member, places in self._places.items():
            if member in copies:
                total[places] += self._checked(member, copies[member])
                count[places] += 1
        mean = (total / np.maximum(count, 1)[:, None]).astype(np.float32)
        self._table = np.where(count[:, None] > 0, mean, self._table)

    def _checked(self, member: str, rows: NDArray[np.floating]) -> NDArray[np.floating]:
        expected = (len(self._places[member]), self._table.shape[1])
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

    def pack(self, member: Member, content: RecordDict) -> RecordDict:
        """The content of a message with the rows of this member."""
        rows = to_arrays({self._job: self.rows_of(member.name)})
        return RecordDict({**content, RECORD: rows})

    def unpack(self, members: Sequence[Member], contents: Sequence[RecordDict]) -> None:
        """Take the rows out of the replies and average the copies."""
        copies = {}
        for member, content in zip(members, contents, strict=True):
            record = content.pop(RECORD, None)
            if not isinstance(record, ArrayRecord) or list(record) != [self._job]:
                raise RunError(
                    f"{member.name} returned no rows of job {self._job}: let all organisations "
                    "run one version"
                )
            copies[member.name] = ReadInPlace(record[self._job]).numpy()
        self.average(copies)

    def restart(self, seed: int) -> None:
        """Draw the first rows."""
        generator = np.random.default_rng(seed_of(seed, "rows"))
        start = generator.standard_normal(self._table.shape, dtype=np.float32)
        self._table = np.float32(START_SPREAD) * start

    def snapshot(self) -> object:
        """The table; averaging makes a new one."""
        return self._table

    def restore(self, snapshot: object) -> None:
        """Go back to the rows of a snapshot."""
        if not isinstance(snapshot, np.ndarray) or snapshot.shape != self._table.shape:
            raise ProtocolError("There is no such state of the rows to go back to.")
        self._table = snapshot


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
