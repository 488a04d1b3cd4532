"""Machines that are short of something, stopped, ended, or asked for two runs at once.

Three deployed organisations go through a whole run with sealed training, each time in a process of
its own. It ends at the bits that it would have had, or in one sentence; the next run ends at them.
"""

import os
import resource
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from fedlap_app.flower.grids.in_process import make_grid
from fedlap_app.settings import parse_settings
from tests.adversary.test_disk_full import FINISHED, REFUSED, child, outcome, run_alone
from tests.adversary.test_disk_full_training import Orgs

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def organisations(tmp_path_factory):
    root = tmp_path_factory.mktemp("machines")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAP_HOME", str(root / "home"))
        for name in ("fsync", "fdatasync"):  # no machine fails, so that nothing waits for a disk
            patch.setattr(os, name, lambda handle: None)
        yield Orgs(root)


@pytest.fixture
def orgs(organisations, monkeypatch):
    monkeypatch.setenv("FEDLAP_HOME", str(organisations.root / "home"))
    organisations.again()
    return organisations


def require_same(orgs):
    """The bits of the first run, and a count of consent that forgets nothing."""
    found, counts = orgs.models(), orgs.counts()
    for name, model in orgs.wanted.items():
        assert all(np.array_equal(found[name][key], model[key]) for key in model)
        assert counts[name] >= orgs.whole[name]


def require_recovery(orgs, done, *allowed):
    """One sentence if the run failed; the next one ends at the same bits."""
    status, said = done
    assert status in (FINISHED, REFUSED, *allowed), said
    assert "\n" not in said.strip()
    assert str(orgs.root) not in said
    status, said = run_alone(orgs.train)
    assert status == FINISHED, said
    require_same(orgs)


def within(limit, most, orgs):
    """A run whose process may have so much of something."""

    def work():
        resource.setrlimit(limit, (most, most))
        orgs.train()

    return run_alone(work)


def usual(orgs):
    """Seconds that a run takes here and now."""
    started = time.perf_counter()
    assert run_alone(orgs.train)[0] == FINISHED
    orgs.again()
    return time.perf_counter() - started


def test_sixty_four_files_are_enough(orgs):
    inherited = sum(1 for _ in Path("/proc/self/fd").iterdir())
    status, said = within(resource.RLIMIT_NOFILE, 64 + inherited, orgs)
    assert status == FINISHED, said
    require_same(orgs)


def test_a_process_lets_itself_open_what_its_organisations_need():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def work():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
        make_grid(parse_settings({"clients": 40})).close()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(hard, 40 * 30)

    status, said = run_alone(work)
    assert status == FINISHED, said


@pytest.mark.parametrize("room", [0, 4])
def test_little_memory(orgs, room):
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    done = within(resource.RLIMIT_AS, now + room * MEGABYTE, orgs)
    if done[0] == REFUSED:
        assert "its process has not enough memory: allow it more there" in done[1]
    require_recovery(orgs, done, -signal.SIGABRT)


def test_a_slow_disk_costs_time_alone(orgs, monkeypatch):
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda handle: time.sleep(0.005))
    status, said = run_alone(orgs.train)
    assert status == FINISHED, said
    require_same(orgs)


def test_a_process_that_is_stopped_goes_on(orgs):
    seconds = usual(orgs)
    number, read = child(orgs.train)
    for _ in range(3):
        time.sleep(seconds / 8)
        os.kill(number, signal.SIGSTOP)
        time.sleep(seconds / 8)
        os.kill(number, signal.SIGCONT)
    status, said = outcome(number, read)
    assert status == FINISHED, said
    require_same(orgs)


def test_a_process_that_is_ended_leaves_what_the_next_goes_on_with(orgs):
    seconds = usual(orgs)
    number, read = child(orgs.train)
    time.sleep(0.6 * seconds)
    os.kill(number, signal.SIGTERM)
    require_recovery(orgs, outcome(number, read), -signal.SIGTERM)


def test_two_runs_at_once_on_the_same_stores(orgs):
    """One of them, or both, may be refused; none ends at other bits."""
    both = [child(orgs.train) for _ in range(2)]
    for done in [outcome(*each) for each in both]:
        require_recovery(orgs, done)
