"""What may be deleted from a client store, and what must stay.

Only names that this app gives are deleted, and only in a folder that is a store beyond doubt.
Identity, organisation secret and remembered fingerprints are never touched: without them an
organisation is another one.
"""

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedlap_app.errors import ConfigError
from fedlap_app.methods.kept import kept_jobs
from fedlap_app.store.folders import MARKER, Store
from fedlap_app.sums.identity import is_identity_file

KINDS = ("models", "bases", "jobs", "leftovers")
_DAY = 86_400.0
_LOCK_SECONDS = 5.0
_HASH = "[0-9a-f]{32}"
_OF_RESULT = re.compile(rf"(?:basis|neighbour-sums|feature-moments)-{_HASH}")
_OF_JOB = re.compile(rf"offline-(?:({_HASH})-(?:answered-[01]|columns|order)|(card))")
_SERIES = "settled|listed|reply-even|reply-odd|best|kept"
_OF_TRAINING = re.compile(
    rf"training-({_HASH})-(?:(?:{_SERIES})-[01]|home|said)|(trainings-{_HASH})"
)
_LEDGER = re.compile(rf"offline-{_HASH}")
_POST = rf"(?:own|common|reply)-(?:{_HASH}|none)-\d+(?:-\d+)?"
_KEPT_OF_JOB = r"model\.npz|evaluation\.json|guesses-\d+\.npz|moments-\d+-\d+\.npz|[a-z0-9_]{8}"
_PART_OF_JOB = re.compile(rf"\.(?:(?:{_KEPT_OF_JOB})\.part|(?:ledger|ration)\.json\.(?:part|old))")
_COUNTS = r"(?:consent|begun|runs)\.json"
# Unfinished writes count as leftovers but for those of keys.
_LEFTOVERS = {
    "": re.compile(
        rf"errors\.log|\.(?:{_OF_RESULT.pattern}|{_OF_JOB.pattern})\.part"
        rf"|\.{_COUNTS}\.(?:part|old)"
    ),
    "offline": re.compile(r"(?:missing-organisations|edge-mismatch|consent)\.log"),
    "offline/post": re.compile(rf"{_POST}|\.{_POST}\.part"),
    f"jobs/train-{'[0-9]' * 20}": _PART_OF_JOB,
    f"jobs/offline-{'[0-9a-f]' * 32}": _PART_OF_JOB,
}


@dataclass(frozen=True)
class Item:
    """Something that can go: one model, basis, unfinished job or leftover."""

    kind: str
    name: str
    paths: tuple[Path, ...]
    size: int
    changed: float

    def delete(self) -> None:
        """Remove it."""
        for path in self.paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def store_of(folder: Path) -> Path:
    """The store that a folder is or, if it is an organisation's folder, that it holds."""
    root = folder / "store" if (folder / "org.toml").exists() else folder
    if not is_store(root):
        raise ConfigError(
            f"{folder} is neither a client store nor an organisation folder with one: name the "
            "folder that store-dir or data-dir names"
        )
    return root


def is_store(root: Path) -> bool:
    """Whether a folder is a client store beyond doubt; a file `lock` alone may be anyone's."""
    if (root / MARKER).is_file() or is_identity_file(root / "offline" / "identity"):
        return True
    # Simulated stores from before there was a marker.
    return (root / "lock").is_file() and (
        any(_OF_RESULT.fullmatch(path.name) for path in root.glob("*-*"))
        or any(_LEDGER.fullmatch(path.name) for path in root.glob("jobs/offline-*"))
        or bool(kept_jobs(Store(root)))
    )


def clean(root: Path, kinds: Sequence[str], days: float, *, dry: bool) -> list[Item]:
    """Delete what was not written to for so many days; gives what was, or would be, deleted.

    Parameters
    ----------
    root : the store; a run that uses it now makes this fail.
    kinds : what may go.
    days : how long it must have rested.
    dry : only look.
    """
    store = Store(root)
    before = time.time() - days * _DAY
    with store.lock(_LOCK_SECONDS):
        found = [item for item in _items(store) if item.kind in kinds and item.changed <= before]
        for item in found if not dry else ():
            item.delete()
    return found


def measured(items: Sequence[Item]) -> dict[str, tuple[int, int]]:
    """For every kind the number of items and their bytes."""
    return {
        kind: (
            sum(item.kind == kind for item in items),
            sum(item.size for item in items if item.kind == kind),
        )
        for kind in KINDS
    }


def _items(store: Store) -> Iterator[Item]:
    for name in kept_jobs(store):
        yield _item("models", name, store.job(name).path)
    for path, _ in _named(store.root, "", _OF_RESULT):
        yield _item("bases", path.name, path)
    jobs: dict[str, list[Path]] = {}
    for pattern in (_OF_JOB, _OF_TRAINING):
        for path, match in _named(store.root, "", pattern):
            jobs.setdefault(match[1] or match[2], []).append(path)
    for name, paths in jobs.items():
        yield _item("jobs", name, *paths)
    for folder, pattern in _LEFTOVERS.items():
        for path, _ in _named(store.root, folder, pattern):
            yield _item("leftovers", path.name, path)


def _named(
    root: Path, folder: str, pattern: re.Pattern[str]
) -> Iterator[tuple[Path, re.Match[str]]]:
    """Files of a folder of the store whose whole names fit; none that a link leads to."""
    for path in sorted(root.glob(f"{folder}/*" if folder else "*")):
        match = pattern.fullmatch(path.name)
        linked = path.is_symlink() or (path.parent != root and path.parent.is_symlink())
        if match and path.is_file() and not linked:
            yield path, match


def _item(kind: str, name: str, *paths: Path) -> Item:
    files = [file for path in paths for file in (path, *path.rglob("*"))]
    facts = [file.stat() for file in files]
    size = sum(each.st_size for file, each in zip(files, facts, strict=True) if file.is_file())
    return Item(kind, name, paths, size, max(each.st_mtime for each in facts))
