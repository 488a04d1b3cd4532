"""What may be deleted from a client store, and what must stay.

Identity, organisation secret, remembered fingerprints and the counter of refreshed bases are never
touched: without them an organisation is another one.
"""

import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from client_app.kept import kept_jobs
from client_app.store import Store
from fedlap_app.errors import ConfigError

KINDS = ("models", "bases", "jobs", "leftovers")
_DAY = 86_400.0
_LOCK_SECONDS = 5.0
_KEPT = ("offline-refreshed",)


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
    for root in (folder, folder / "store"):
        if (root / "lock").is_file() or (root / "offline" / "identity").is_file():
            return root
    raise ConfigError(
        f"{folder} is neither a client store nor an organisation folder with one: name the folder "
        "that store-dir or data-dir names"
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
    for path in sorted(store.root.glob("basis-*")):
        yield _item("bases", path.name, path)
    jobs: dict[str, list[Path]] = {}
    for path in sorted(store.root.glob("offline-*")):
        if path.name not in _KEPT:
            jobs.setdefault(path.name.split("-")[1], []).append(path)
    for name, paths in jobs.items():
        yield _item("jobs", name, *paths)
    leftovers = [*store.root.glob("offline/post/*"), *store.root.rglob(".*.part")]
    leftovers += [*store.root.glob("errors.log"), *store.root.glob("offline/*.log")]
    for path in sorted(leftovers):
        yield _item("leftovers", path.name, path)


def _item(kind: str, name: str, *paths: Path) -> Item:
    files = [file for path in paths for file in (path, *path.rglob("*"))]
    facts = [file.stat() for file in files]
    size = sum(each.st_size for file, each in zip(files, facts, strict=True) if file.is_file())
    return Item(kind, name, paths, size, max(each.st_mtime for each in facts))
