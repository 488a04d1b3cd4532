"""The client store: a local folder with one lock, atomic writes and one folder a job."""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from fedlap_app.errors import ConfigError, FedLapError
from fedlap_app.store import names
from fedlap_app.store.files import append_lines, write_private, writing
from fedlap_app.store.locks import Lock

_SAYS = "A client store of FedLap: `fedlap clean-store` makes room in it.\n"
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class StoreError(FedLapError):
    """The store cannot be read, written or locked."""


class Store:
    """Files that one organisation keeps between messages and runs.

    Parameters
    ----------
    root : Path
        Folder of the store; created with access for its owner only.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise StoreError(
                f"the client store {root} cannot be created ({error.strerror}): "
                "set store-dir to a folder that can be written"
            ) from error

    @contextmanager
    def lock(self, timeout: float = 60.0) -> Iterator[None]:
        """Hold the store's only lock, so that two processes never work on one store."""
        if not self._lock.take(timeout):
            raise StoreError(
                f"the client store {self.root} is in use by another process for over "
                f"{timeout:g} s: end that process or set another store-dir"
            )
        try:
            yield
        finally:
            self._lock.release()

    @cached_property
    def _lock(self) -> Lock:
        # Open as long as the store: a message in the offline phase takes a few milliseconds.
        with writing(names.LOCK):
            lock = Lock(self.root / names.LOCK)
        marker = self.root / names.MARKER
        if not marker.exists():
            with writing(names.MARKER):
                write_private(marker, _SAYS.encode(), durable=False)
        return lock

    def job(self, job: str) -> "Folder":
        """Folder of one job."""
        return Folder(self.root / names.JOBS / _safe(job))

    def jobs(self) -> list[str]:
        """Names of the jobs that have a folder."""
        found = (self.root / names.JOBS).glob("*")
        return sorted(each.name for each in found if each.is_dir() and not each.is_symlink())

    def forget(self, job: str) -> None:
        """Delete the folder of a job."""
        shutil.rmtree(self.root / names.JOBS / _safe(job), ignore_errors=True)


class Folder:
    """Named files below a folder; a file is whole or absent, never in between."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        return (self.path / _safe(name)).is_file()

    def write(self, name: str, content: bytes) -> Path:
        """Write a file atomically and sync it to disk."""
        target = self.path / _safe(name)
        try:
            write_private(target, content)
        except OSError as error:
            raise StoreError(
                f"{target} cannot be written ({error.strerror}): free some space or set store-dir"
            ) from error
        return target

    def read(self, name: str) -> bytes:
        """Content of a file."""
        try:
            return (self.path / _safe(name)).read_bytes()
        except OSError as error:
            raise StoreError(
                f"{self.path / name} cannot be read ({error.strerror}): was the store deleted?"
            ) from None

    def append_line(self, name: str, line: str) -> None:
        """Add a line to a log file."""
        append_lines(self.path / _safe(name), line.rstrip("\n"))

    def write_json(self, name: str, value: Any) -> Path:  # noqa: ANN401 - any JSON value
        """Write a value as JSON."""
        return self.write(name, json.dumps(value, indent=2, sort_keys=True).encode())

    def read_json(self, name: str) -> Any:  # noqa: ANN401 - any JSON value
        """Read a JSON value."""
        try:
            return json.loads(self.read(name))
        except ValueError:
            raise StoreError(f"{self.path / name} is damaged: delete it and run again") from None


def _safe(name: str) -> str:
    """Refuse names that could leave the store."""
    if not _SAFE.fullmatch(name):
        raise ConfigError(
            f"'{name}' cannot name a file of the store: use letters, digits, '.', '_' and '-'"
        )
    return name
