"""The newest record of a series, in two files that are overwritten in turn.

To overwrite a file costs a fraction of what it costs to make a new one. A file begins with the
number of its record and the record's size, and these are written last: until they are there, the
other file holds the newest record, so whoever dies in between has lost nothing.
"""

import os
import struct
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fedlap_app.store.files import opened, sync, unreadable, writing
from fedlap_app.store.packing import Data, Part, pieces, unpack

_HEAD = struct.Struct("<QQ")
_MOST = 1024  # byte strings that the kernel takes at once


class Head(NamedTuple):
    """What a file begins with; the number is 0 when there is no record."""

    number: int = 0
    size: int = 0


class Newest:
    """The newest record of a series; the caller sees to it that nobody else writes meanwhile.

    Parameters
    ----------
    folder
        Where the files are; made on the first write, with access for its owner only.
    name
        What they are called.
    durable
        Whether a record must survive a power failure.
    """

    def __init__(self, folder: Path, name: str, *, durable: bool) -> None:
        self._folder = folder
        self._paths = tuple(f"{folder}/{name}-{turn}" for turn in range(2))
        self._durable = durable
        self._handles: dict[int, int] = {}
        self._heads = [self._look(turn) for turn in range(2)]
        # Files stay open, because a record is written every few milliseconds.
        weakref.finalize(self, _close, self._handles)

    @property
    def head(self) -> Head:
        """Number and size of the newest record."""
        return max(self._heads)

    def unchanged(self) -> bool:
        """Whether nobody else has written, or deleted the files, since this object looked."""
        for turn, handle in self._handles.items():
            if _head(handle) != self._heads[turn] or not os.fstat(handle).st_nlink:
                return False
        absent = (path for turn, path in enumerate(self._paths) if turn not in self._handles)
        return not any(map(os.path.exists, absent))

    def write(self, *parts: Part) -> None:
        """Write the next record."""
        number = self.head.number + 1
        with writing(Path(self._paths[number % 2]).name):
            handle = self._open(number % 2)
            size = self._fill(handle, parts)
            self._declare(handle, Head(number, size))

    def _look(self, turn: int) -> Head:
        """Open a file, if it is there."""
        try:
            self._handles[turn] = os.open(self._paths[turn], os.O_RDWR)
        except FileNotFoundError:
            return Head()
        except OSError as error:
            raise unreadable(self._paths[turn], error) from None
        head = _head(self._handles[turn])
        # A file that was cut holds no record.
        whole = os.fstat(self._handles[turn]).st_size >= _HEAD.size + head.size
        return head if whole else Head()

    def _open(self, turn: int) -> int:
        if turn not in self._handles:
            self._handles[turn] = opened(self._paths[turn], os.O_RDWR | os.O_CREAT)
            if self._durable:
                sync(self._folder)
        return self._handles[turn]

    def _fill(self, handle: int, parts: tuple[Part, ...]) -> int:
        """Write the content; gives its size."""
        size = write_all(handle, list(pieces(*parts)), _HEAD.size)
        if self._durable:
            os.fdatasync(handle)
        return size

    def _declare(self, handle: int, head: Head) -> None:
        """Make the content count."""
        os.pwrite(handle, _HEAD.pack(*head), 0)
        if self._durable:
            os.fdatasync(handle)
        self._heads[head.number % 2] = head

    def read(self, count: int | None = None) -> list[memoryview]:
        """Parts of the newest record; none: there is no record."""
        number, size = self.head
        if not number:
            return []
        try:
            content = _read(self._handles[number % 2], size)
        except OSError as error:
            raise unreadable(self._paths[number % 2], error) from None
        return unpack(content, count)

    def trim(self) -> None:
        """Delete whatever earlier records have left behind."""
        number, size = self.head
        Path(self._paths[1 - number % 2]).unlink(missing_ok=True)
        if number:
            os.truncate(self._handles[number % 2], _HEAD.size + size)


def _close(handles: dict[int, int]) -> None:
    for handle in handles.values():
        os.close(handle)


def _head(handle: int) -> Head:
    found = os.pread(handle, _HEAD.size, 0)
    return Head(*_HEAD.unpack(found)) if len(found) == _HEAD.size else Head()


def _read(handle: int, size: int) -> memoryview:
    content, done = memoryview(bytearray(size)), 0
    while done < size:
        got = os.preadv(handle, [content[done:]], _HEAD.size + done)
        if not got:
            raise OSError(0, "it is cut")
        done += got
    return content.toreadonly()


def write_all(handle: int, content: Sequence[Data], offset: int) -> int:
    """Write byte strings one after the other at an offset; gives how many bytes there are."""
    size, done = sum(map(len, content)), 0
    for at in range(0, len(content), _MOST):
        done += os.pwritev(handle, content[at : at + _MOST], offset + done)
    if done < size:  # the kernel takes 2 GB at once
        rest = memoryview(b"".join(content))
        done = 0
        while done < size:
            done += os.pwrite(handle, rest[done:], offset + done)
    return size
