"""Files of one job: packed parts written atomically, and growing columns in mapped memory."""

import json
import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.methods.offline.messages import Data, pack, pieces, unpack
from fedlap_app.methods.offline.newest import Newest, sync


class JobFiles:
    """A folder whose files are whole or absent.

    Parameters
    ----------
    path
        The folder; made on the first write, with access for its owner only.
    durable
        Whether a write must survive a power failure. A process that dies loses nothing either
        way; a simulation repeats itself and can do without.
    """

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path = path
        self.durable = durable

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        return (self.path / name).is_file()

    def newest(self, name: str) -> Newest:
        """The newest record of a series."""
        return Newest(self.path, name, durable=self.durable)

    def write(self, name: str, *parts: Data) -> None:
        """Write a file of parts: beside its place, synced if durable, then renamed."""
        part, target = self.path / f".{name}.part", self.path / name
        try:
            with os.fdopen(_private(part, os.O_WRONLY | os.O_TRUNC), "wb") as file:
                file.writelines(pieces(*parts))
                if self.durable:
                    file.flush()
                    os.fsync(file.fileno())
            part.replace(target)
            if self.durable:
                sync(self.path)
        except OSError as error:
            raise RunError(
                f"{target} cannot be written ({error.strerror}): free some space or set store-dir"
            ) from None

    def read(self, name: str, count: int | None = None) -> list[memoryview]:
        """Parts of a file; only those that are looked at are read from disk."""
        try:
            with (self.path / name).open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise RunError(
                f"{self.path / name} cannot be read ({error}): was the store changed? "
                "Start a new job"
            ) from None
        return unpack(memoryview(content), count)

    def columns(self, name: str, rows: int, count: int) -> NDArray[np.float64]:
        """A matrix, column after column, in mapped memory; zeros when it is new."""
        handle = _private(self.path / name, os.O_RDWR)
        try:
            if os.fstat(handle).st_size != 8 * rows * count:
                os.ftruncate(handle, 8 * rows * count)
            content = mmap.mmap(handle, 8 * rows * count)
        finally:
            os.close(handle)
        return np.frombuffer(content, dtype=np.float64).reshape((rows, count), order="F")

    def sync_columns(self, matrix: NDArray[np.float64]) -> None:
        """Bring a mapped matrix to disk, if durable."""
        content: Any = matrix
        while content is not None and not isinstance(content, mmap.mmap):
            content = content.obj if isinstance(content, memoryview) else content.base
        if self.durable and content is not None:
            content.flush()

    def drop(self, *names: str) -> None:
        """Delete files."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)


def pack_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Names, types and shapes as JSON, and the content of all arrays."""
    table = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    return pack(json.dumps(table).encode(), [array.tobytes() for array in arrays.values()])


def unpack_arrays(data: Data) -> dict[str, NDArray[np.generic]]:
    """Read what `pack_arrays` gave, as new arrays in C order; nothing gives no arrays."""
    if not len(data):
        return {}
    table, content = unpack(data, 2)
    arrays, at = {}, 0
    for name, kind, shape in json.loads(bytes(table)):
        size = math.prod(shape) * np.dtype(kind).itemsize
        part = content[at : at + size]
        if len(part) < size:
            raise ProtocolError("The stored state of a job is damaged; start a new job.")
        arrays[name] = np.frombuffer(part, dtype=np.dtype(kind)).reshape(shape).copy()
        at += size
    return arrays


def _private(path: Path, flags: int) -> int:
    """Open a file that only its owner can read, in a folder that is made when it is missing."""
    try:
        return os.open(path, flags | os.O_CREAT, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, flags | os.O_CREAT, 0o600)
