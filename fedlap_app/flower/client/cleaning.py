"""What may be deleted from a client store, and what must stay.

Only names that this app gives are deleted, and only in a folder that is a store beyond doubt.
Identity, organisation secret and remembered fingerprints are never touched: without them an
organisation is another one.
"""

import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fedlap_app.errors import ConfigError
from fedlap_app.methods.kept import kept_jobs
from fedlap_app.store import names, places
from fedlap_app.store.folders import Store
from fedlap_app.sums.identity import is_identity_file
from fedlap_app.sums.programs import PROGRAMS

KINDS = ("models", "bases", "jobs", "leftovers")
_DAY = 86_400.0
_LOCK_SECONDS = 5.0
_KEPT = {program.kept_as for program in PROGRAMS.values()} - {""}
_WRITTEN_WHOLE = {names.MODEL, names.EVALUATION, names.GRAPH, names.LEDGER, names.RATION}
_RELEASE_BEFORE = re.compile("[a-z0-9_]{8}")  # what its unfinished files in a job were called


def _is_result(name: str) -> bool:
    fields = names.RESULT.read(name)
    return fields is not None and fields["kind"] in _KEPT


def _job_of(name: str) -> str:
    """The unfinished job that a file is of; empty: none."""
    for kind, field in (
        (names.PHASE_FILE, "job"), (names.PENDING, "what"), (names.SEALED_FILE, "job"),
    ):  # fmt: skip
        if fields := kind.read(name):
            return fields[field]
    return name if name in names.KEYS else ""


def _is_of_store(name: str) -> bool:
    known = (names.PHASE_FILE, names.PENDING, names.SEALED_FILE, names.COUNTS)
    return _is_result(name) or any(name in kind for kind in known)


def _is_of_job(name: str) -> bool:
    known = (_WRITTEN_WHOLE, names.GUESSES, names.MOMENTS)
    return any(name in kind for kind in known) or _RELEASE_BEFORE.fullmatch(name) is not None


def _is_part(name: str) -> bool:
    return name in names.PART


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
    root = places.own_store(folder) if (folder / "org.toml").exists() else folder
    if not is_store(root):
        raise ConfigError(
            f"{folder} is neither a client store nor an organisation folder with one: name the "
            "folder that store-dir or data-dir names"
        )
    return root


def is_store(root: Path) -> bool:
    """Whether a folder is a client store beyond doubt; a file `lock` alone may be anyone's."""
    if (root / names.MARKER).is_file() or is_identity_file(root / names.OFFLINE / names.IDENTITY):
        return True
    # Simulated stores from before there was a marker.
    return (root / names.LOCK).is_file() and (
        any(_is_result(path.name) for path in root.glob("*-*"))
        or any(name in names.PHASE for name in Store(root).jobs())
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
    root = store.root
    for name in kept_jobs(store):
        yield _item("models", name, store.job(name).path)
    jobs: dict[str, list[Path]] = {}
    for path in _files(root):
        if _is_result(path.name):
            yield _item("bases", path.name, path)
        if job := _job_of(path.name):
            jobs.setdefault(job, []).append(path)
    for name, paths in jobs.items():
        yield _item("jobs", name, *paths)
    for path in _leftovers(store):
        yield _item("leftovers", path.name, path)


def _leftovers(store: Store) -> Iterator[Path]:
    """Logs, parts of messages and unfinished files; those of keys stay."""
    offline = store.root / names.OFFLINE
    yield from _files(store.root, lambda name: name == names.ERRORS, _is_of_store)
    yield from _files(offline, lambda name: name in names.LOGS)
    yield from _files(offline / names.POST, _is_part, _is_part)
    for job in store.jobs():
        if job in names.TRAINING or job in names.PHASE:
            yield from _files(store.job(job).path, unfinished=_is_of_job)


def _files(
    folder: Path,
    whole: Callable[[str], bool] | None = None,
    unfinished: Callable[[str], bool] | None = None,
) -> Iterator[Path]:
    """Files of a folder with such names (default: all); none that a link leads to."""
    for path in sorted(folder.glob("*")) if not folder.is_symlink() else ():
        fits = (whole is None and unfinished is None) or any(
            fit is not None and fit(name)
            for fit, name in ((whole, path.name), (unfinished, names.finished(path.name)))
        )
        if fits and path.is_file() and not path.is_symlink():
            yield path


def _item(kind: str, name: str, *paths: Path) -> Item:
    files = [file for path in paths for file in (path, *path.rglob("*"))]
    facts = [file.stat() for file in files]
    size = sum(each.st_size for file, each in zip(files, facts, strict=True) if file.is_file())
    return Item(kind, name, paths, size, max(each.st_mtime for each in facts))
