import numpy as np
from flwr.app import RecordDict

from client_app.moments import read_moments, write_moments
from client_app.task import Task


def test_moments_serve_later_rounds_of_the_same_stage_only():
    state, task = RecordDict(), Task(run=7, stage=1)
    assert read_moments(state, task, 1) == {}
    write_moments(state, task, 3, {"first.0": np.arange(3, dtype=np.float32)})
    np.testing.assert_array_equal(read_moments(state, task, 4)["first.0"], [0, 1, 2])
    assert read_moments(state, task, 3) == {}
    assert read_moments(state, Task(run=7, stage=2), 4) == {}
    assert read_moments(state, Task(run=8, stage=1), 4) == {}
