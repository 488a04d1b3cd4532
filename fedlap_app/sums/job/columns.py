"""The basis vectors of one member while they grow.

They are in memory. The record of each step holds the newest columns; when these become many, older
ones go to a file. The solver may replace the block that it appended last, so that one stays in the
record: what is in the file is final.
"""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.spectral.solvers import Basis
from fedlap_app.store import names
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.packing import Data

FILE = names.COLUMNS
MOST = 2**20
"""Bytes of columns that a record holds besides the last block."""

Array = NDArray[np.float64]


class Columns:
    """Q and Z of one member.

    Parameters
    ----------
    files
        Files of the job.
    rows, vectors
        Shape of Q and of Z.
    """

    def __init__(self, files: JobFiles, rows: int, vectors: int) -> None:
        self.basis = Basis.allocate(rows, vectors)
        self._files = files
        self._column = self.basis.Q.itemsize * rows
        self._filed = self._last = self._count = 0

    def load(self, count: int, recorded: Data) -> None:
        """Read the first columns, from a record and from the file before it."""
        middle = len(recorded) // 2
        self._filed = self._last = count - middle // self._column
        self._count = count
        parts = (recorded[:middle], recorded[middle:])
        for matrix, offset, part in zip(*self._matrices(), parts, strict=True):
            size = self._filed * self._column
            before = self._files.read_at(FILE, offset, size) if size else b""
            content = np.frombuffer(b"".join((before, part)), "<f8")
            matrix[:, :count] = content.reshape((len(matrix), count), order="F")

    def save(self, count: int) -> list[Data]:
        """What the record of this step has to hold of the columns so far."""
        if count > self._count:
            self._last, self._count = self._count, count
        if 2 * (self._last - self._filed) * self._column > MOST:
            for matrix, offset in zip(*self._matrices(), strict=True):
                at = offset + self._filed * self._column
                self._files.write_at(FILE, at, [_bytes(matrix[:, self._filed : self._last])])
            self._filed = self._last
        return [_bytes(matrix[:, self._filed : count]) for matrix in self._matrices()[0]]

    def _matrices(self) -> tuple[tuple[Array, Array], tuple[int, int]]:
        """Both matrices, and where each begins in the file."""
        return (self.basis.Q, self.basis.Z), (0, self.basis.Q.nbytes)


def _bytes(columns: Array) -> Data:
    """Columns one after the other, without a copy."""
    if not columns.size:
        return b""
    return np.ascontiguousarray(columns.T, dtype="<f8").data.cast("B")
