"""Where FedLap keeps files on this machine: below ``FEDLAP_HOME``, by default ``~/.fedlap``."""

import os
from pathlib import Path


def home() -> Path:
    """Absolute folder of everything that FedLap writes unless told otherwise."""
    return Path(os.environ.get("FEDLAP_HOME") or Path.home() / ".fedlap").expanduser().absolute()


def cache_dir() -> Path:
    """Prepared data sets; may be deleted at any time."""
    return home() / "cache"


def runs_dir() -> Path:
    """One folder a run."""
    return home() / "runs"


def stores_dir() -> Path:
    """Client stores of simulated organisations."""
    return home() / "stores"
