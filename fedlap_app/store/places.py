"""Where FedLap keeps files on this machine: below ``FEDLAP_HOME``, by default ``~/.fedlap``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from fedlap_app.errors import ConfigError

_other: ContextVar[Path | None] = ContextVar("home", default=None)


def home() -> Path:
    """Absolute folder of everything that FedLap writes unless told otherwise."""
    return _other.get() or _usual()


@contextmanager
def home_at(folder: Path) -> Iterator[None]:
    """Another home for what this thread does meanwhile; prepared data sets stay shared."""
    before = _other.set(folder.absolute())
    try:
        yield
    finally:
        _other.reset(before)


def _usual() -> Path:
    return Path(os.environ.get("FEDLAP_HOME") or Path.home() / ".fedlap").expanduser().absolute()


def cache_dir() -> Path:
    """Prepared data sets; may be deleted at any time."""
    return _usual() / "cache"


def turns_dir() -> Path:
    """Locks of runs that share simulated stores."""
    return home() / "turns"


def runs_dir() -> Path:
    """One folder a run."""
    return home() / "runs"


def stores_dir() -> Path:
    """Client stores of simulated organisations."""
    return home() / "stores"


def stores_at(store_dir: str) -> Path:
    """The same, where a setting may name another folder."""
    return Path(store_dir).expanduser() if store_dir else stores_dir()


def own_store(folder: Path) -> Path:
    """Store of the organisation whose folder it is, unless its node names another one."""
    return folder / "store"


def path_of(given: str | os.PathLike[str], what: str) -> Path:
    """The path that the caller named."""
    try:
        return Path(given).expanduser().absolute()
    except (TypeError, RuntimeError):  # RuntimeError: a user without a home
        raise ConfigError(f"{what} = {given!r} is no path: give a text or a Path") from None


def folder_at(given: str | os.PathLike[str], what: str) -> Path:
    """Make a folder that the caller named."""
    folder = path_of(given, what)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{what} = '{folder}' cannot be a folder ({error.strerror}): name one that can be "
            "written"
        ) from None
    return folder
