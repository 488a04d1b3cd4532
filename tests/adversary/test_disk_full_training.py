"""A disk that is full at any byte, and kills at any moment, in a whole run of deployed members.

What the cards, the sealed sums of training and the kept model write is tried here; the phase
before it is in `test_disk_full.py`. Only the organisations have little room, the server has enough.
"""

import json
import os
import random
import resource
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.run import run
from fedlap_app.models.model_file import ModelFile
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.sums.job.live import forget as forget_live

from .scene import Scene
from .test_disk_full import FINISHED, REFUSED, child, outcome, run_alone

SETTINGS = replace(
    Settings(), method="fedavg", accounts=240, clients=3, rounds=2, local_epochs=1, hidden="8",
    self_training=1, optimizer_state="keep", step_timeout=60.0, backend="mask",
)  # fmt: skip
NO_LIMIT = resource.RLIM_INFINITY


class Tight(InProcessGrid):
    """Organisations that cannot write a file beyond so many bytes."""

    room = NO_LIMIT

    def _deliver(self, message, context):
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.room, hard))
        try:
            return super()._deliver(message, context)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (NO_LIMIT, hard))


class Orgs:
    """Three deployed organisations, as they were before their first run and after it."""

    def __init__(self, root):
        self.scene, self.root = Scene(root, SETTINGS), root
        shutil.copytree(root / "orgs", root / "begun")
        self.train()
        self.wanted, self.whole = self.models(), self.counts()
        self.largest = max(p.stat().st_size for p in self._stores() if p.is_file())

    def _stores(self):
        return (path for name in self.scene.names for path in self.scene.store(name).rglob("*"))

    def again(self):
        """Begin from before the first run."""
        shutil.rmtree(self.root / "orgs")
        shutil.copytree(self.root / "begun", self.root / "orgs")
        shutil.rmtree(Path(os.environ["FEDLAP_HOME"]), ignore_errors=True)

    def train(self, room=NO_LIMIT):
        forget_live()
        configs = folder_configs(self.scene.folders.values())
        grid = Tight(app, configs, SETTINGS.to_config(), run_id=new_run_id())
        grid.room = room
        run(grid, SETTINGS, Unwatched())

    def models(self):
        """The newest finished model of each organisation; a file that cannot be read fails."""
        found = {}
        for name in self.scene.names:
            jobs = sorted((self.scene.store(name) / names.JOBS).glob("train-*"))
            files = [job / names.MODEL for job in jobs if (job / names.MODEL).exists()]
            found[name] = ModelFile.from_bytes(files[-1].read_bytes(), name).parameters
        return found

    def counts(self):
        """What the consent of each organisation has counted."""
        found = {}
        for name in self.scene.names:
            path = self.scene.store(name) / names.CONSENT
            graphs = json.loads(path.read_text())["graphs"] if path.exists() else {}
            found[name] = sum(
                each["before"] + sum(each["jobs"].values()) for each in graphs.values()
            )
        return found

    def require_recovery(self, done):
        status, said = done
        assert status in (FINISHED, REFUSED, -signal.SIGKILL), said
        if status == REFUSED:
            assert "disk is full" in said or "cannot be written" in said, said
            assert "free some space" in said
            assert str(self.root) not in said
        after = self.counts()
        status, said = run_alone(self.train)
        assert status == FINISHED, said
        found = self.models()
        for name, model in self.wanted.items():
            assert all(np.array_equal(found[name][key], model[key]) for key in model)
            self._require_readable(name)
        final = self.counts()
        assert all(final[name] >= max(after[name], self.whole[name]) for name in final)

    def _require_readable(self, name):
        """What the organisation's own report and audit read."""
        jobs = self.scene.store(name) / names.JOBS
        rounds = [path.read_text().splitlines() for path in jobs.glob(f"*/{names.ROUNDS}")]
        assert all(json.loads(line) for lines in rounds for line in lines)
        ledgers = [json.loads(path.read_text()) for path in jobs.glob(f"train-*/{names.LEDGER}")]
        assert any(each["state"] == "finished" for each in ledgers)


@pytest.fixture(scope="module")
def organisations(tmp_path_factory):
    home = os.environ.get("FEDLAP_HOME")
    root = tmp_path_factory.mktemp("tight")
    os.environ["FEDLAP_HOME"] = str(root / "home")
    yield Orgs(root)
    if home is None:
        del os.environ["FEDLAP_HOME"]
    else:
        os.environ["FEDLAP_HOME"] = home


@pytest.fixture
def orgs(organisations, monkeypatch):
    monkeypatch.setenv("FEDLAP_HOME", str(organisations.root / "home"))
    return organisations


def full(orgs, number):
    refused = 0
    for at in range(number):
        orgs.again()
        room = round(1.2 * orgs.largest * ((at + 1) / number) ** 2)
        done = run_alone(lambda room=room: orgs.train(room))
        refused += done[0] == REFUSED
        orgs.require_recovery(done)
    return refused


def kills(orgs, number, seed):
    rng, died = random.Random(seed), 0
    orgs.again()
    started = time.perf_counter()
    assert run_alone(orgs.train)[0] == FINISHED
    usual = time.perf_counter() - started
    for _ in range(number):
        orgs.again()
        pid, read = child(orgs.train)
        time.sleep(rng.random() * usual)
        os.kill(pid, signal.SIGKILL)
        done = outcome(pid, read)
        died += done[0] == -signal.SIGKILL
        orgs.require_recovery(done)
    return died


def test_organisations_whose_disks_are_full(orgs):
    assert full(orgs, 2) == 1


@pytest.mark.slow
def test_organisations_whose_disks_are_full_at_fifty_sizes(orgs):
    assert full(orgs, 50) >= 20


@pytest.mark.slow
def test_a_run_killed_at_fifty_moments(orgs):
    assert kills(orgs, 50, seed=2) >= 10
