"""A small JSON file that is written again and again, by whoever holds the lock of its folder."""

import errno
import json
import os
import weakref
from pathlib import Path
from typing import Any

from fedlap_app.errors import RunError
from fedlap_app.private_files import OWNER_ONLY, write_private


class RewrittenFile:
    """One JSON object in a file that only its owner can read.

    Parameters
    ----------
    path
        Where it is; its folder is made on the first write.
    durable
        Whether a write must survive a power failure: then each one is a new file, synced, in the
        place of the old one. Otherwise the file is overwritten in place, which costs a hundredth
        and survives the end of the process.
    """

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path = path
        self._durable = durable
        self._handles: list[int] = []
        self._size = 0
        self._last: tuple[bytes, dict[str, Any]] | None = None
        weakref.finalize(self, _close, self._handles)

    def read(self) -> dict[str, Any] | None:
        """The object, for reading only; None: there is no file."""
        try:
            content = self._content()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RunError(f"{self._name} cannot be read ({error.strerror})") from None
        if self._last is None or self._last[0] != content:
            try:
                found = json.loads(content)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise RunError(f"{self._name} is damaged: restore it from a backup, or delete it")
            self._last = content, found
        return self._last[1]

    def write(self, text: str, value: dict[str, Any] | None = None) -> None:
        """Put the JSON text of an object in the place of the last one.

        Parameters
        ----------
        text
            The new content.
        value
            The object, if it will be read again (default: it is parsed then).
        """
        content = text.encode()
        try:
            if self._durable:
                write_private(self.path, content)
                _sync(self.path.parent)
            else:
                content = self._overwrite(content)
        except OSError as error:
            raise RunError(
                f"{self._name} cannot be written ({error.strerror}): free some space or set "
                "store-dir"
            ) from None

        self._last = None if value is None else (content, value)

    def _overwrite(self, content: bytes) -> bytes:
        """Write in place; blanks cover what is left of a longer content."""
        handle = self._handle(os.O_CREAT)
        content = content.ljust(self._size)
        if os.pwrite(handle, content, 0) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size = len(content)
        return content

    @property
    def _name(self) -> str:
        """The file as errors name it, which the server may read: without its folders."""
        return f"{self.path.name} of the store"

    def _content(self) -> bytes:
        if self._durable:
            return self.path.read_bytes()
        handle = self._handle(0)
        self._size = os.fstat(handle).st_size
        return os.pread(handle, self._size, 0)

    def _handle(self, flags: int) -> int:
        """The open file; opened again when another one has taken its place."""
        if self._handles and os.fstat(self._handles[0]).st_nlink:
            return self._handles[0]
        _close(self._handles)
        try:
            handle = os.open(self.path, os.O_RDWR | flags, OWNER_ONLY)
        except FileNotFoundError:
            if not flags:
                raise
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, os.O_RDWR | flags, OWNER_ONLY)
        self._handles.append(handle)
        self._size = os.fstat(handle).st_size
        return handle


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _close(handles: list[int]) -> None:
    while handles:
        os.close(handles.pop())
