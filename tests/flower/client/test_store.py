import multiprocessing
import os
import stat
import time

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.store.folders import Folder, Store, StoreError


def test_files_are_whole_or_absent(tmp_path, monkeypatch):
    folder = Store(tmp_path / "store").job("a")
    folder.write("x", b"first")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="No space left"):
        folder.write("x", b"second")
    assert folder.read("x") == b"first"
    assert [entry.name for entry in folder.path.iterdir()] == ["x"]


def test_bytes_and_json_come_back(tmp_path):
    folder = Folder(tmp_path)
    folder.write("a", b"content")
    assert folder.read("a") == b"content"
    folder.write_json("b.json", {"k": [1, 2]})
    assert folder.read_json("b.json") == {"k": [1, 2]}


def test_damaged_files_give_one_sentence(tmp_path):
    folder = Folder(tmp_path)
    folder.write("b.json", b"{")
    with pytest.raises(StoreError, match="damaged"):
        folder.read_json("b.json")
    with pytest.raises(StoreError, match="cannot be read"):
        folder.read("absent")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 200])
def test_names_cannot_leave_the_store(tmp_path, name):
    with pytest.raises(ConfigError, match="cannot name a file"):
        Store(tmp_path).job(name)


def test_only_the_owner_can_look_in(tmp_path):
    store = Store(tmp_path / "store")
    store.job("a").write("x", b"")
    for folder in (store.root, store.job("a").path):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def _hold(root, ready, release):
    with Store(root).lock():
        ready.set()
        release.wait(20)


def test_one_process_at_a_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    ready, release = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(tmp_path, ready, release))
    holder.start()
    assert ready.wait(20)
    with pytest.raises(StoreError, match="in use by another process"), Store(tmp_path).lock(0.05):
        time.sleep(0)
    release.set()
    holder.join(20)
    with Store(tmp_path).lock(5):
        assert holder.exitcode == 0


def test_jobs_are_listed_and_forgotten(tmp_path):
    store = Store(tmp_path)
    assert store.jobs() == []
    store.job("b").write("x", b"")
    store.job("a").write("x", b"")
    assert store.jobs() == ["a", "b"]
    store.forget("a")
    assert store.jobs() == ["b"]


def test_a_store_that_cannot_be_made_gives_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be created"):
        Store(tmp_path / "file" / "store")
