"""Federations that the tests of a module share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def _own_home(tmp_path_factory):
    """Keep fixtures of a module, too, away from the user's ``~/.fedlap``."""
    before = os.environ.get("FEDLAP_HOME")
    os.environ["FEDLAP_HOME"] = str(tmp_path_factory.mktemp("fedlap-home"))
    yield
    if before is None:
        del os.environ["FEDLAP_HOME"]
    else:
        os.environ["FEDLAP_HOME"] = before


@pytest.fixture(scope="session")
def benchmark_data():
    """Folder of the benchmark data, for fixtures that outlive a test."""
    folder = os.environ.get("FEDLAP_DATA")
    if not folder or not (Path(folder) / "Cora").is_dir():
        pytest.skip("FEDLAP_DATA does not name a folder with the benchmark data")
    return Path(folder)
