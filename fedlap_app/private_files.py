"""Files that only their owner can read."""

import os
import stat
from pathlib import Path

OWNER_ONLY = 0o600


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, atomically."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
    part.replace(path)


def is_private(path: Path) -> bool:
    """Whether nobody but the owner may read or write the file."""
    return not stat.S_IMODE(path.stat().st_mode) & 0o077
