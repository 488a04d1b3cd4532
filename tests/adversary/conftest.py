"""Organisations that defend themselves: nothing is mocked, only the server is dishonest."""

import os
from dataclasses import replace

import pytest

from fedlap_app.settings import Settings
from fedlap_app.sums.job.live import forget as forget_live

from .scene import Scene


@pytest.fixture(autouse=True, scope="module")
def no_power_failure():
    """Processes die here and disks are full, but no machine fails: nothing waits for a disk."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, lambda handle: None)
        yield


@pytest.fixture(autouse=True)
def no_memory():
    forget_live()
    yield
    forget_live()


@pytest.fixture
def small():
    """Three banks with 240 accounts, six vectors in blocks of three, exact sums."""
    return replace(
        Settings(), method="fedavg", spectral=True, accounts=240, clients=3, rounds=2,
        local_epochs=1, hidden="8", step_timeout=60.0, vectors=6, rank=0, block=3, backend="mask",
        operator="sym", column_weights="none", fusion="sum", self_training=0,
        training_backend="plain",
    )  # fmt: skip


@pytest.fixture
def scene(small, tmp_path):
    return Scene(tmp_path, small)
