"""Organisations in worker processes: the bits of one process, and no process left behind."""

import multiprocessing

import numpy as np
import pytest

import fedlap_app as fedlap
from fedlap_app.errors import RunError
from fedlap_app.flower.grids.in_process import make_grid
from fedlap_app.flower.grids.workers import WorkerGrid
from fedlap_app.settings import Settings

SMALL = {"rounds": 2, "hidden": "4", "vectors": 8, "block": 4, "backend": "mask", "rank": 4}


def test_a_run_has_the_bits_of_one_process():
    orgs = fedlap.load("banks", clients=3, accounts=200)
    alone, shared = (fedlap.train(orgs, processes=count, **SMALL) for count in (1, 2))
    assert not multiprocessing.active_children()
    assert shared.history.drop(columns="seconds").equals(alone.history.drop(columns="seconds"))
    ours = shared.model_file.parameters
    for name, value in alone.model_file.parameters.items():
        assert np.array_equal(value, ours[name]), name


def test_workers_encrypt_side_by_side():
    orgs = fedlap.load("banks", clients=4, accounts=200)
    given = {**SMALL, "backend": "ckks"}
    # The first run leaves the files through which SEAL's keys go, and the second forks with them.
    alone, shared = (fedlap.train(orgs, processes=count, **given) for count in (1, 4))
    for name in orgs.names:
        ours, theirs = alone.basis(name), shared.basis(name)
        assert np.allclose(ours.eigenvalues, theirs.eigenvalues, atol=1e-4)


def test_whoever_listens_hears_one_process():
    settings = Settings(dataset="banks", clients=3, processes=2)
    assert isinstance(make_grid(settings), WorkerGrid)
    assert not isinstance(make_grid(settings, listener=lambda *message: None), WorkerGrid)


def test_a_worker_that_died_is_one_sentence(tmp_path):
    orgs = fedlap.load("banks", clients=3, accounts=200)

    class Killer:
        def step_done(self, number, steps):
            for process in multiprocessing.active_children():
                process.kill()

        def round_done(self, number, rounds, totals): ...

    with pytest.raises(RunError, match="has ended: look whether"):
        fedlap.train(orgs, processes=2, progress=Killer(), **SMALL)
    assert not multiprocessing.active_children()
