import numpy as np
import pytest

from fedlap_app.methods.offline.columns import Columns
from fedlap_app.methods.offline.job_files import JobFiles


@pytest.fixture
def make(tmp_path):
    """A new process looks at the same columns."""
    return lambda: Columns(JobFiles(tmp_path / "job", durable=True), 5, 6)


def fill(columns, start, stop, seed):
    rng = np.random.default_rng(seed)
    columns.basis.Q[:, start:stop] = rng.normal(size=(5, stop - start))
    columns.basis.Z[:, start:stop] = rng.normal(size=(5, stop - start))


def same(first, second, count):
    np.testing.assert_array_equal(first.basis.Q[:, :count], second.basis.Q[:, :count])
    np.testing.assert_array_equal(first.basis.Z[:, :count], second.basis.Z[:, :count])
    return bool(first.basis.Q[:, :count].any() and first.basis.Z[:, :count].any())


def test_columns_of_all_steps_are_there_in_a_new_process(make):
    columns = make()
    for start, stop in ((0, 2), (2, 5), (5, 6)):
        fill(columns, start, stop, seed=start)
        columns.save(stop)
        again = make()
        again.load(stop)
        assert same(again, columns, stop)
        assert again.basis.Q.flags.f_contiguous
        columns = again if start == 2 else columns


@pytest.mark.parametrize("restarted", [True, False])
def test_the_last_block_may_be_replaced(make, restarted):
    columns = make()
    for start, stop in ((0, 2), (2, 4)):
        fill(columns, start, stop, seed=start)
        columns.save(stop)
    if restarted:
        columns = make()
        columns.load(4)
    fill(columns, 2, 4, seed=9)
    columns.save(4)
    again = make()
    again.load(4)
    assert same(again, columns, 4)
