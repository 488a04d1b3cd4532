"""A disk that is full at any byte, a client that is killed at any moment, a read-only store.

Each case is a process of its own that runs the real ClientApp. A limit on the size of files stands
for the disk: the kernel takes a part of what is written and refuses the rest.
"""

import ctypes
import json
import os
import random
import resource
import shutil
import signal
import time
import traceback
from dataclasses import replace
from pathlib import Path

import pytest

from fedlap_app.errors import FedLapError
from fedlap_app.sums.job.live import forget as forget_live

from .phases import bases, phase, same, settings_in

FINISHED, REFUSED, CRASHED = 0, 3, 4
BEFORE = 3  # vectors of the run before
_NEW_MOUNTS, _BIND, _READ_ONLY, _REMOUNT, _PRIVATE = 0x20000, 4096, 1, 32, 1 << 18 | 1 << 14


def child(work):
    """Do some work in a copy of this process; gives its number and where it says why it failed."""
    read, write = os.pipe()
    number = os.fork()
    if number:
        os.close(write)
        return number, read
    status, said = FINISHED, ""
    try:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work()
    except FedLapError as error:
        status, said = REFUSED, str(error)
    except BaseException:
        status, said = CRASHED, traceback.format_exc()
    os.write(write, said.encode()[-4000:])
    os._exit(status)


def outcome(number, read):
    """Exit code of a child, negative for a signal, and its last words."""
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), said


def run_alone(work):
    return outcome(*child(work))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Stores after a run of three vectors, the rows of U that six give, and the counts then."""
    folder = tmp_path_factory.mktemp("disk")
    home = os.environ.get("FEDLAP_HOME")
    os.environ["FEDLAP_HOME"] = str(folder / "home")
    settings = settings_in(folder)
    phase(replace(settings, vectors=BEFORE, block=1))
    shutil.copytree(folder / "stores", folder / "begun")
    phase(settings)
    forget_live()
    yield folder, bases(settings), counts(settings)
    if home is None:
        del os.environ["FEDLAP_HOME"]
    else:
        os.environ["FEDLAP_HOME"] = home


@pytest.fixture
def settings(begun, monkeypatch):
    """Settings with stores in which a run of three vectors has ended."""
    folder, _, _ = begun
    monkeypatch.setenv("FEDLAP_HOME", str(folder / "home"))
    settings = settings_in(folder)
    start_again(settings, folder)
    return settings


def start_again(settings, folder):
    shutil.rmtree(settings.store_dir)
    shutil.rmtree(folder / "home" / "checkpoints", ignore_errors=True)
    shutil.copytree(folder / "begun", settings.store_dir)


def counts(settings):
    """Vectors that each store says have left; a file that cannot be read fails here."""
    found = {}
    for path in sorted(Path(settings.store_dir).glob("*/consent.json")):
        (graph,) = json.loads(path.read_text())["graphs"].values()
        found[path.parent.name] = graph["before"] + sum(graph["jobs"].values())
    return found


def limited(settings, size):
    """A run that cannot write a file beyond so many bytes."""

    def work():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        phase(settings)

    return work


def require_recovery(settings, begun, done):
    """What must hold after a run that was disturbed, and after the next one."""
    _, wanted, whole = begun
    status, said = done
    assert status in (FINISHED, REFUSED, -signal.SIGKILL), said
    if status == REFUSED:
        assert "disk is full" in said or "cannot be written" in said, said
        assert "free some space" in said, said
        assert settings.store_dir not in said
    after = counts(settings)
    assert after.keys() == whole.keys()
    assert all(count >= BEFORE for count in after.values())
    status, said = run_alone(lambda: phase(settings))
    assert status == FINISHED, said
    assert same(bases(settings), wanted)
    # A job that had begun may be counted besides the one that ended; it is never forgotten.
    final = counts(settings)
    assert all(final[name] >= max(after[name], whole[name]) for name in whole)


def sizes(settings, number):
    """Limits from nothing to more than the largest file, most of them where files end."""
    largest = max(p.stat().st_size for p in Path(settings.store_dir).rglob("*") if p.is_file())
    return [round((1.2 * largest) * (at / (number - 1)) ** 2) for at in range(number)]


def disk_full(settings, begun, number):
    refused = 0
    for size in sizes(settings, number):
        start_again(settings, begun[0])
        done = run_alone(limited(settings, size))
        refused += done[0] == REFUSED
        require_recovery(settings, begun, done)
    return refused


def kills(settings, begun, number, seed):
    rng, died = random.Random(seed), 0
    started = time.perf_counter()
    start_again(settings, begun[0])
    assert run_alone(lambda: phase(settings))[0] == FINISHED
    usual = time.perf_counter() - started
    for _ in range(number):
        start_again(settings, begun[0])
        number, read = child(lambda: phase(settings))
        time.sleep(rng.random() * usual)
        os.kill(number, signal.SIGKILL)
        done = outcome(number, read)
        died += done[0] == -signal.SIGKILL
        require_recovery(settings, begun, done)
    return died


def test_a_disk_that_is_full_at_some_sizes(settings, begun):
    assert disk_full(settings, begun, 8) >= 4


def test_a_client_killed_at_some_moments(settings, begun):
    assert kills(settings, begun, 4, seed=0) >= 1


@pytest.mark.slow
def test_a_disk_that_is_full_at_fifty_sizes(settings, begun):
    assert disk_full(settings, begun, 50) >= 25


@pytest.mark.slow
def test_a_client_killed_at_fifty_moments(settings, begun):
    assert kills(settings, begun, 50, seed=1) >= 10


def mounted(*calls):
    """Change what this process alone sees of the file system; skipped where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS) or libc.mount(None, b"/", None, _PRIVATE, None):
        raise PermissionError
    for source, target, kind, flags, data in calls:
        if libc.mount(source, target, kind, flags, data):
            raise PermissionError


def test_a_store_that_is_read_only(settings, begun):
    """The server gets the reason in one sentence and no place on the organisation's disk."""
    folder = settings.store_dir.encode()

    def work():
        bind = (folder, folder, None, _BIND, None)
        mounted(bind, (None, folder, None, _BIND | _READ_ONLY | _REMOUNT, None))
        phase(settings)

    status, said = run_alone(work)
    if "PermissionError" in said and status == CRASHED:
        pytest.skip("this user may not mount anything")
    assert status == REFUSED, said
    assert "its store cannot be written (read-only file system): " in said
    assert settings.store_dir not in said
    assert "\n" not in said
    assert run_alone(lambda: phase(settings))[0] == FINISHED
    assert same(bases(settings), begun[1])


@pytest.mark.parametrize("room", [4, 20, 48, 96])
def test_a_small_disk(settings, begun, room):
    """The real thing: a file system of a few blocks, copied out when it is full."""
    folder = Path(settings.store_dir)
    out = folder.with_name("out")
    shutil.rmtree(out, ignore_errors=True)
    used = sum(-(-p.stat().st_size // 4096) * 4 for p in folder.rglob("*") if p.is_file())

    def work():
        size = f"size={used + room}k".encode()
        mounted((b"tmpfs", str(folder).encode(), b"tmpfs", 0, size))
        shutil.copytree(folder.with_name("begun"), folder, dirs_exist_ok=True)
        try:
            phase(settings)
        finally:
            shutil.copytree(folder, out)

    done = run_alone(work)
    if "PermissionError" in done[1] and done[0] == CRASHED:
        pytest.skip("this user may not mount anything")
    shutil.rmtree(folder)
    out.rename(folder)
    require_recovery(settings, begun, done)
