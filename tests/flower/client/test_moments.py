import numpy as np
import pytest
from flwr.app import RecordDict

from fedlap_app.flower.client.moments import CarriedMoments, StoredMoments
from fedlap_app.methods.task import Task
from fedlap_app.store.folders import Store, StoreError

TASK = Task(run=7, stage=1)


def some(first):
    return {"first.0": np.arange(first, first + 3, dtype=np.float32)}


@pytest.fixture(params=["carried", "stored"])
def make(request, tmp_path):
    """Moments of a task, in the state of the client or in its store."""
    state, store = RecordDict(), Store(tmp_path)
    if request.param == "carried":
        return lambda task: CarriedMoments(state, task)
    return lambda task: StoredMoments(store, task)


def test_moments_serve_later_rounds_of_the_same_stage_only(make):
    assert make(TASK).read(1) == {}
    make(TASK).write(3, some(0))
    np.testing.assert_array_equal(make(TASK).read(4)["first.0"], [0, 1, 2])
    np.testing.assert_array_equal(make(TASK).read(9)["first.0"], [0, 1, 2])
    assert make(TASK).read(3) == {}
    assert make(Task(run=7, stage=2)).read(4) == {}
    assert make(Task(run=8, stage=1)).read(4) == {}


def test_a_round_that_is_asked_for_twice_starts_twice_from_the_same_state(tmp_path):
    for number in (1, 2, 3):
        StoredMoments(Store(tmp_path), TASK).write(number, some(number))
    again = StoredMoments(Store(tmp_path), TASK)
    np.testing.assert_array_equal(again.read(3)["first.0"], some(2)["first.0"])
    np.testing.assert_array_equal(again.read(4)["first.0"], some(3)["first.0"])
    assert len([*tmp_path.rglob("moments-*")]) == 2, "older ones are deleted"


def test_an_older_round_that_comes_late_takes_nothing_from_a_newer_one(tmp_path):
    kept = StoredMoments(Store(tmp_path), TASK)
    for number in (1, 2, 3, 2):
        kept.write(number, some(number))
    np.testing.assert_array_equal(kept.read(4)["first.0"], some(3)["first.0"])


def test_damaged_moments_are_refused(tmp_path):
    kept = StoredMoments(Store(tmp_path), TASK)
    kept.write(1, some(0))
    next(tmp_path.rglob("moments-*")).write_bytes(b"PK")
    with pytest.raises(StoreError, match="damaged"):
        kept.read(2)
