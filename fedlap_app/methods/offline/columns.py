"""The basis vectors of one member while they grow: in memory, and column after column in a file."""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.methods.offline.job_files import JobFiles
from fedlap_app.spectral.solvers import Basis

FILE = "columns"
_WORD = 8

Array = NDArray[np.float64]


class Columns:
    """Q and Z of one member; all columns of Q come first in the file.

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
        self._last = 0
        self._count = 0

    def load(self, count: int) -> None:
        """Read the first columns, which another process has saved."""
        for matrix, offset in self._matrices() if count else ():
            part = matrix[:, :count]
            content = self._files.read_at(FILE, offset, _WORD * part.size)
            part[:] = np.frombuffer(content, "<f8").reshape(part.shape, order="F")
        self._last, self._count = 0, count

    def save(self, count: int) -> None:
        """Write the columns since the last call; without new ones, the last block once more."""
        if count > self._count:
            self._last, self._count = self._count, count
        for matrix, offset in self._matrices():
            block = np.ascontiguousarray(matrix[:, self._last : count].T, dtype="<f8")
            if block.size:
                at = offset + _WORD * self._last * len(matrix)
                self._files.write_at(FILE, at, block.data.cast("B"))

    def _matrices(self) -> tuple[tuple[Array, int], ...]:
        """Both matrices, and where each begins in the file."""
        return (self.basis.Q, 0), (self.basis.Z, _WORD * self.basis.Q.size)
