import numpy as np
import pytest

from fedlap_app.store.job_files import JobFiles
from fedlap_app.sums.job import columns as columns_module
from fedlap_app.sums.job.columns import FILE, Columns

PAIR = 2 * 8 * 5


@pytest.fixture
def files(tmp_path):
    return JobFiles(tmp_path / "job", durable=True)


@pytest.fixture(params=[0, 3 * PAIR, 100 * PAIR])
def most(request, monkeypatch):
    """How much a record holds: next to nothing, three columns, everything."""
    monkeypatch.setattr(columns_module, "MOST", request.param)
    return request.param


def fill(columns, start, stop, seed):
    rng = np.random.default_rng(seed)
    columns.basis.Q[:, start:stop] = rng.normal(size=(5, stop - start))
    columns.basis.Z[:, start:stop] = rng.normal(size=(5, stop - start))


def recorded(columns, count):
    return memoryview(b"".join(columns.save(count)))


def same(first, second, count):
    pairs = ((first.basis.Q, second.basis.Q), (first.basis.Z, second.basis.Z))
    return all(np.array_equal(a[:, :count], b[:, :count]) and a.any() for a, b in pairs)


@pytest.mark.parametrize("restarted", [True, False])
def test_columns_of_all_steps_are_there_in_a_new_process(files, most, restarted):
    columns = Columns(files, 5, 12)
    for start, stop in ((0, 2), (2, 5), (5, 6), (6, 10), (10, 12)):
        fill(columns, start, stop, seed=start)
        record = recorded(columns, stop)
        assert len(record) >= PAIR * (stop - start)
        again = Columns(files, 5, 12)
        again.load(stop, record)
        assert same(again, columns, stop)
        assert again.basis.Q.flags.f_contiguous
        columns = again if restarted else columns


@pytest.mark.parametrize("restarted", [True, False])
def test_the_last_block_may_be_replaced(files, most, restarted):
    columns = Columns(files, 5, 12)
    for start, stop in ((0, 4), (4, 8)):
        fill(columns, start, stop, seed=start)
        record = recorded(columns, stop)
    if restarted:
        columns = Columns(files, 5, 12)
        columns.load(8, record)
    before = files.read_at(FILE, 0, 4 * PAIR // 2) if files.has(FILE) else b""
    fill(columns, 4, 8, seed=9)
    record = recorded(columns, 8)
    again = Columns(files, 5, 12)
    again.load(8, record)
    assert same(again, columns, 8)
    assert not before or files.read_at(FILE, 0, 4 * PAIR // 2) == before


def test_a_few_columns_need_no_file(files):
    columns = Columns(files, 5, 12)
    fill(columns, 0, 12, seed=0)
    assert len(recorded(columns, 12)) == 12 * PAIR
    assert not files.has(FILE)


def test_no_columns_yet(files):
    columns = Columns(files, 5, 12)
    assert len(recorded(columns, 0)) == 0
    columns.load(0, b"")
    assert not columns.basis.Q.any()
