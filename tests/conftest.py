"""What all tests share: the benchmark data, when it is there, and a home folder of their own."""

import logging
import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory, monkeypatch):
    """Keep every test away from the user's ``~/.fedlap``."""
    home = tmp_path_factory.mktemp("fedlap-home")
    monkeypatch.setenv("FEDLAP_HOME", str(home))
    return home


@pytest.fixture(autouse=True)
def same_verbosity():
    """Undo what a command did to the level of Flower's log."""
    logger = logging.getLogger("flwr")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture
def fedlap_data():
    """Folder of the benchmark data, named by ``FEDLAP_DATA``."""
    folder = os.environ.get("FEDLAP_DATA")
    if not folder or not (Path(folder) / "Cora").is_dir():
        pytest.skip("FEDLAP_DATA does not name a folder with the benchmark data")
    return Path(folder)
