"""Offline phases of three small banks over Flower's messages."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.sums.job.bases import Bases
from fedlap_app.sums.job.live import forget as forget_live


@pytest.fixture(autouse=True)
def no_memory():
    forget_live()
    yield
    forget_live()


@pytest.fixture
def settings(settings, tmp_path):
    """Three small banks, six vectors in blocks of three, stores of its own, exact sums."""
    stores = str(tmp_path / "stores")
    return replace(
        settings,
        vectors=6,
        block=3,
        spectral=True,
        store_dir=stores,
        backend="mask",
        training_backend="mask",
    )


def phase(grid, settings):
    known = MemberGrid(grid)
    return run_offline(known, gather(known, settings), settings)


def bases(settings):
    """Rows of U of every organisation, by name."""
    found = {}
    for store in sorted(Path(settings.store_dir).iterdir()):
        kept = Bases(store / "basis")
        found[store.name] = np.array(kept.load(kept.facts()[0]).U)
    return found


def same(first, second):
    """Whether two phases gave the same bits."""
    equal = (np.array_equal(first[name], second[name]) for name in first)
    return first.keys() == second.keys() and all(equal)


@pytest.fixture
def undisturbed(settings, make_grid, tmp_path):
    elsewhere = replace(settings, store_dir=str(tmp_path / "undisturbed"))
    phase(make_grid(elsewhere), elsewhere)
    return bases(elsewhere)
