"""The basis vectors of one member while they grow: in memory, and column after column in a file."""

import numpy as np

from fedlap_app.methods.offline.job_files import JobFiles
from fedlap_app.spectral.solvers import Basis

FILE = "columns"
_WORD = 8


class Columns:
    """Q and Z of one member; in the file each column of Q is followed by that of Z.

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
        self._pair = 2 * _WORD * rows
        self._last = 0
        self._count = 0

    def load(self, count: int) -> None:
        """Read the first columns, which another process has saved."""
        if count:
            content = self._files.read_at(FILE, 0, count * self._pair)
            pairs = np.frombuffer(content, "<f8").reshape(count, 2, -1)
            self.basis.Q[:, :count], self.basis.Z[:, :count] = pairs[:, 0].T, pairs[:, 1].T
        self._last, self._count = 0, count

    def save(self, count: int) -> None:
        """Write the columns since the last call; without new ones, the last block once more."""
        if count > self._count:
            self._last, self._count = self._count, count
        pairs = (m[:, j] for j in range(self._last, count) for m in (self.basis.Q, self.basis.Z))
        columns = [column.astype("<f8", copy=False).data.cast("B") for column in pairs]
        self._files.write_at(FILE, self._last * self._pair, columns)
