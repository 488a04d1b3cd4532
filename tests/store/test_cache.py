import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from fedlap_app.store import cache
from fedlap_app.store.cache import drop_entry, ensure_entry


def write(folder):
    (folder / "file").write_text("content")


def test_an_entry_is_built_once(tmp_path):
    calls = []

    def build(folder):
        calls.append(folder)
        write(folder)

    entry = tmp_path / "room" / "entry"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ensure_entry(entry, build), range(16)))
    assert len(calls) == 1
    assert (entry / "file").read_text() == "content"
    assert {path.name for path in entry.parent.iterdir()} == {"entry", ".lock"}


def test_a_failed_build_leaves_nothing(tmp_path):
    def fail(folder):
        write(folder)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        ensure_entry(tmp_path / "room" / "entry", fail)
    assert [path.name for path in (tmp_path / "room").iterdir()] == [".lock"]


def test_the_oldest_entries_go(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "ENTRY_LIMIT", 3)
    for number in range(3):
        ensure_entry(tmp_path / f"e{number}", write)
        os.utime(tmp_path / f"e{number}", (number + 1, number + 1))
    ensure_entry(tmp_path / "e0", write)  # used again: now the youngest
    ensure_entry(tmp_path / "e3", write)
    assert sorted(path.name for path in tmp_path.glob("e*")) == ["e0", "e2", "e3"]


def test_dropping_is_safe_twice(tmp_path):
    ensure_entry(tmp_path / "entry", write)
    drop_entry(tmp_path / "entry")
    drop_entry(tmp_path / "entry")
    assert not (tmp_path / "entry").exists()
