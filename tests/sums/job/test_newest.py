import gc
import os
from pathlib import Path

import pytest

from fedlap_app.errors import RunError
from fedlap_app.store.newest import Newest


class KilledError(Exception):
    """Stands for the end of a process."""


@pytest.fixture(params=[True, False])
def open_again(tmp_path, request):
    """A new process looks at the same records."""
    return lambda: Newest(tmp_path / "a" / "job", "step", durable=request.param)


def parts(records):
    return [bytes(part) for part in records.read()]


def test_the_newest_record_comes_back_in_every_process(open_again, tmp_path):
    assert open_again().head.number == 0
    assert parts(open_again()) == []
    for content in ([b"one", b""], [b"two" * 1000], [b"3"], [b"four", b"4"]):
        open_again().write(*content)
        assert parts(open_again()) == content
    folder = tmp_path / "a" / "job"
    assert len(list(folder.iterdir())) == 2
    assert all(p.stat().st_mode & 0o077 == 0 for p in (folder, *folder.iterdir()))


def test_a_kernel_that_takes_less_at_once_loses_nothing(open_again, monkeypatch):
    content = [b"%d" % number * 50 for number in range(1500)]
    write, single = os.pwritev, os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda h, some, at: write(h, some[:7], at))
    monkeypatch.setattr(os, "pwrite", lambda h, data, at: single(h, bytes(data)[:999], at))
    open_again().write(content)
    monkeypatch.undo()
    assert parts(open_again()) == [b"".join(content)]


def test_one_object_may_write_a_whole_series(open_again):
    records = open_again()
    for number in range(5):
        records.write(b"%d" % number)
        assert parts(records) == parts(open_again()) == [b"%d" % number]
        assert records.head == open_again().head
        assert records.unchanged()


def test_it_is_noticed_when_others_write_or_delete(open_again, tmp_path):
    one = open_again()
    assert one.unchanged()
    for number in range(4):
        other = open_again()
        other.write(b"%d" % number)
        assert other.unchanged()
        assert not one.unchanged()
        one = open_again()
    for path in (tmp_path / "a" / "job").iterdir():
        path.unlink()
    assert not one.unchanged()
    open_again().write(b"new")
    assert not one.unchanged()


def test_files_are_closed_with_the_object(open_again):
    handles = Path("/proc/self/fd")
    gc.collect()  # what other tests left open
    before = len(list(handles.iterdir()))
    for number in range(5):
        open_again().write(b"%d" % number)
    gc.collect()
    assert len(list(handles.iterdir())) == before


@pytest.mark.parametrize("step", ["_fill", "_declare"])
@pytest.mark.parametrize("count", range(1, 5))
def test_who_dies_inside_a_write_finds_the_record_before(open_again, monkeypatch, step, count):
    for number in range(count):
        open_again().write(b"%d" % number, b"x" * (100 - 20 * number))

    def torn(self, handle, *_):
        os.pwrite(handle, b"\xff" * 60, 16)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Newest, step, torn)
        with pytest.raises(KilledError):
            open_again().write(b"next", b"y" * 500)
    assert parts(open_again())[0] == b"%d" % (count - 1)
    open_again().write(b"next")
    assert parts(open_again()) == [b"next"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_earlier_records_can_be_deleted(open_again, tmp_path, count):
    for _ in range(count):
        open_again().write(b"long secret" * 10)
    open_again().write(b"public")
    open_again().trim()
    files = list((tmp_path / "a" / "job").iterdir())
    assert len(files) == 1
    assert b"secret" not in files[0].read_bytes()
    assert parts(open_again()) == [b"public"]


def test_a_file_that_was_cut_holds_no_record(open_again, tmp_path):
    for content in (b"first", b"second" * 20):
        open_again().write(content)
    os.truncate(tmp_path / "a" / "job" / "step-0", 50)
    assert parts(open_again()) == [b"first"]


def test_a_folder_that_cannot_be_made_is_an_error(open_again, tmp_path):
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises((RunError, FileExistsError, NotADirectoryError)):
        open_again().write(b"x")
