"""Files of one job: packed parts written atomically, and bytes in the middle of a file."""

import json
import math
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.store.files import opened, unreadable, write_private, writing
from fedlap_app.store.newest import Newest, write_all
from fedlap_app.store.packing import Data, pack, pieces, unpack


class JobFiles:
    """A folder whose files are whole or absent.

    Parameters
    ----------
    path
        The folder; made on the first write, with access for its owner only.
    durable
        Whether a write must survive a power failure. A process that dies loses nothing either
        way; a simulation repeats itself and can do without.
    prefix
        What the names of all files begin with (default: nothing).
    """

    def __init__(self, path: Path, *, durable: bool, prefix: str = "") -> None:
        self.path = path
        self.durable = durable
        self.prefix = prefix

    def at(self, name: str) -> str:
        """Where a file is."""
        return f"{self.path}/{self.prefix}{name}"

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        return Path(self.at(name)).is_file()

    def newest(self, name: str) -> Newest:
        """The newest record of a series."""
        return Newest(self.path, f"{self.prefix}{name}", durable=self.durable)

    def write(self, name: str, *parts: Data) -> None:
        """Write a file of parts: beside its place, synced if durable, then renamed."""
        with writing(f"{self.prefix}{name}"):
            write_private(Path(self.at(name)), *pieces(*parts), durable=self.durable)

    def read(self, name: str, count: int | None = None) -> list[memoryview]:
        """Parts of a file; only those that are looked at are read from disk."""
        try:
            with Path(self.at(name)).open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise unreadable(self.at(name), error) from None
        return unpack(memoryview(content), count)

    def write_at(self, name: str, offset: int, content: Sequence[Data]) -> None:
        """Write into a file that may be torn, because nothing counts on its content yet."""
        with writing(f"{self.prefix}{name}"):
            handle = opened(self.at(name), os.O_WRONLY | os.O_CREAT)
            try:
                write_all(handle, content, offset)
                if self.durable:
                    os.fdatasync(handle)
            finally:
                os.close(handle)

    def read_at(self, name: str, offset: int, size: int) -> bytes:
        """Some bytes of a file."""
        try:
            with Path(self.at(name)).open("rb") as file:
                file.seek(offset)
                content = file.read(size)
        except OSError as error:
            raise unreadable(self.at(name), error) from None
        if len(content) < size:
            raise unreadable(self.at(name), "it is cut")
        return content

    def drop(self, *names: str) -> None:
        """Delete files."""
        for name in names:
            Path(self.at(name)).unlink(missing_ok=True)


def pack_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """Names, types and shapes as JSON, and the content of all arrays."""
    table = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    content = b"".join([array.tobytes() for array in arrays.values()])
    return pack(json.dumps(table).encode(), content)


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
