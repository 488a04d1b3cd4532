"""Files that only their owner can read, replaced as a whole: a disk that fills up harms none."""

import contextlib
import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fedlap_app.errors import RunError, UnwritableError
from fedlap_app.store import names

OWNER_ONLY = 0o600
MOST_LOG_BYTES = 2**23
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
# Of Linux: paths are relative to the process' folder; names are exchanged.
_renameat2 = getattr(ctypes.CDLL(None), "renameat2", None)
_HERE, _EXCHANGE = -100, 2


def write_private(path: Path, *content: bytes | memoryview, durable: bool = True) -> None:
    """Write a file that only its owner can read, atomically.

    Parameters
    ----------
    path
        Where it is; its folder is made when it is missing.
    content
        Byte strings that are written one after the other.
    durable
        Whether it must survive a power failure (default: True).
    """
    with replaced(path, durable=durable) as file:
        file.writelines(content)


def write_shared(path: Path, content: bytes) -> None:
    """The same for a file that is no secret: who may read it is the process' own choice."""
    with replaced(path, durable=False, mode=0o666) as file:
        file.write(content)


@contextmanager
def replaced(
    path: Path, *, durable: bool, mode: int = OWNER_ONLY, writer: str = ""
) -> Iterator[BinaryIO]:
    """A new file that takes the place of an old one when all of it is written.

    Parameters
    ----------
    path
        Where it is; its folder is made when it is missing.
    durable
        Whether it must survive a power failure.
    mode
        Who may read it (default: its owner).
    writer
        Who writes, where several may do so at once (default: a lock sees to it that none does).
    """
    part = path.with_name(names.unfinished(path.name, writer))
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(opened(part, _NEW, mode), "wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        # What is there of it would take the room that somebody has to make.
        part.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def swap_private(path: Path, content: bytes) -> None:
    """The same for a file that is written every few milliseconds and may forget a power failure.

    The content goes into a second file, which then changes places with the first one and is kept
    for the next time: to overwrite blocks and to move names costs a tenth of making a new file.
    """
    folder, _, name = os.fspath(path).rpartition(os.sep)
    part = f"{folder}{os.sep}{names.unfinished(name)}"
    handle = opened(part, os.O_WRONLY | os.O_CREAT)
    try:
        if os.pwrite(handle, content, 0) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if os.fstat(handle).st_size > len(content):
            os.ftruncate(handle, len(content))
    finally:
        os.close(handle)
    if not _exchanged(part, os.fspath(path)):
        os.replace(part, path)  # noqa: PTH105 - quicker than a Path's, which makes another Path


def _exchanged(one: str, other: str) -> bool:
    """Let two files change names at once, where both exist and the system can."""
    if _renameat2 is None:
        return False
    first, second = os.fsencode(one), os.fsencode(other)
    return bool(_renameat2(_HERE, first, _HERE, second, _EXCHANGE) == 0)


def append_lines(path: Path, *lines: str) -> None:
    """Add lines, all or none, to a log that only its owner can read.

    One that is too large begins anew: whoever can send messages can fill a log.
    """
    content = "".join(f"{line}\n" for line in lines).encode()
    handle = opened(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        before = os.fstat(handle).st_size
        if before > MOST_LOG_BYTES:
            before = 0
            os.ftruncate(handle, before)
        if os.write(handle, content) < len(content):
            os.ftruncate(handle, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def sync(path: str | Path) -> None:
    """Bring a file or the list of a folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def writing(name: str) -> Iterator[None]:
    """Turn what a disk refuses into one sentence, which the server may read: without folders."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it is cut"
        raise UnwritableError(
            f"{name} of the store cannot be written ({reason}): free some space or set store-dir "
            "to a folder that can be written, then start the run again"
        ) from error


def unreadable(path: str, error: object) -> RunError:
    """What to say of a file of a job that cannot be read."""
    reason = error.strerror or "it is cut" if isinstance(error, OSError) else error
    return RunError(
        f"{Path(path).name} of the store cannot be read ({reason}): was the store changed? Start "
        "a new job"
    )


def is_private(path: Path) -> bool:
    """Whether nobody but the owner may read or write the file."""
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


def opened(path: Path | str, flags: int, mode: int = OWNER_ONLY) -> int:
    """Open a file in a folder that is made when it is missing."""
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, flags, mode)
    Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.open(path, flags, mode)
