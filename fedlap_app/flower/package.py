"""The code that is installed here, and how it differs from what somebody else brings.

What others bring is compared with it as data: nothing of it is written down, imported or run.
"""

import hashlib
import io
import json
import zipfile
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("client_app", "fedlap_app", "server_app")


def installed_modules() -> dict[str, bytes]:
    """Content of every module of the installed package, by its path."""
    return {
        path.relative_to(_ROOT).as_posix(): path.read_bytes()
        for name in _PACKAGES
        for path in sorted((_ROOT / name).rglob("*.py"))
    }


@cache
def installed_code() -> str:
    """Hash of the installed modules: the same on every machine that has the same code."""
    hashes = {name: hashlib.sha256(body).hexdigest() for name, body in installed_modules().items()}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def modules_that_differ(bundle: bytes) -> list[str]:
    """Paths of modules that a bundle has otherwise, lacks or adds; all of a broken one."""
    ours = installed_modules()
    try:
        with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
            theirs = {entry.filename: entry for entry in archive.infolist()}
            same = {
                name
                for name, body in ours.items()
                if name in theirs and _unpacked(archive, theirs[name], len(body) + 1) == body
            }
    except Exception:  # whatever is wrong with it: others made it
        return sorted(ours)
    starts = tuple(f"{name}/" for name in _PACKAGES)
    brought = {name for name in theirs if name.startswith(starts) and name.endswith(".py")}
    return sorted((set(ours) | brought) - same)


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most: int) -> bytes:
    """The first bytes of an entry; only these two ways of packing stop where they are told to."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return b""
    with archive.open(entry) as file:
        return file.read(most)
