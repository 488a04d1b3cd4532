"""The newest record of a series, in two files that are overwritten in turn.

To overwrite a file costs a fraction of what it costs to make a new one. A file begins with the
number of its record and the record's size, and these are written last: until they are there, the
other file holds the newest record, so whoever dies in between has lost nothing.
"""

import os
import struct
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from fedlap_app.errors import RunError
from fedlap_app.methods.offline.messages import Data, Part, pieces, unpack

_HEAD = struct.Struct("<QQ")
_MOST = 1024  # byte strings that the kernel takes at once


class Stamp(NamedTuple):
    """Changes with every record; the number is 0 when there is none."""

    number: int = 0
    size: int = 0
    inode: int = 0
    changed: int = 0


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

    @cached_property
    def stamp(self) -> Stamp:
        """Which record is the newest."""
        return max(map(_stamp_at, self._paths))

    def write(self, *parts: Part) -> None:
        """Write the next record."""
        number = self.stamp.number + 1
        path = self._paths[number % 2]
        try:
            handle = self._open(path)
            try:
                size = self._fill(handle, parts)
                self.stamp = self._declare(handle, number, size)
            finally:
                os.close(handle)
        except OSError as error:
            raise RunError(
                f"{path} cannot be written ({error.strerror}): free some space or set store-dir"
            ) from None

    def _open(self, path: str) -> int:
        try:
            return os.open(path, os.O_RDWR)
        except FileNotFoundError:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if self._durable:
            sync(self._folder)
        return handle

    def _fill(self, handle: int, parts: tuple[Part, ...]) -> int:
        """Write the content; gives its size."""
        size = write_all(handle, list(pieces(*parts)), _HEAD.size)
        if self._durable:
            os.fdatasync(handle)
        return size

    def _declare(self, handle: int, number: int, size: int) -> Stamp:
        """Make the content count."""
        os.pwrite(handle, _HEAD.pack(number, size), 0)
        if self._durable:
            os.fdatasync(handle)
        found = os.fstat(handle)
        return Stamp(number, size, found.st_ino, found.st_mtime_ns)

    def read(self, count: int | None = None) -> list[memoryview]:
        """Parts of the newest record; none: there is no record."""
        path = self._paths[self.stamp.number % 2]
        if not self.stamp.number:
            return []
        try:
            handle = os.open(path, os.O_RDONLY)
            try:
                content = _read(handle, self.stamp.size)
            finally:
                os.close(handle)
        except OSError as error:
            raise RunError(
                f"{path} cannot be read ({error.strerror}): was the store changed? Start a new job"
            ) from None
        return unpack(content, count)

    def trim(self) -> None:
        """Delete whatever earlier records have left behind."""
        Path(self._paths[1 - self.stamp.number % 2]).unlink(missing_ok=True)
        if self.stamp.number:
            os.truncate(self._paths[self.stamp.number % 2], _HEAD.size + self.stamp.size)


def _stamp_at(path: str) -> Stamp:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return Stamp()
    try:
        return _stamp(handle)
    finally:
        os.close(handle)


def _stamp(handle: int) -> Stamp:
    head = os.pread(handle, _HEAD.size, 0)
    number, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
    found = os.fstat(handle)
    # A file that was cut holds no record.
    if not number or found.st_size < _HEAD.size + size:
        return Stamp()
    return Stamp(number, size, found.st_ino, found.st_mtime_ns)


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


def sync(path: str | Path) -> None:
    """Bring a file or the list of a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
