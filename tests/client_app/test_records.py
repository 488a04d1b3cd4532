import numpy as np
import pytest
from flwr.app import Array, MetricRecord, RecordDict

from client_app.records import from_arrays, number, numbers, to_arrays, to_metrics
from fedlap_app.errors import ProtocolError


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (0, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arrays_are_what_flower_makes_of_them(shape, dtype):
    value = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    mine = to_arrays({"a": value})["a"]
    flowers = Array(value)
    assert (mine.dtype, mine.shape, mine.stype, mine.data) == (
        flowers.dtype,
        flowers.shape,
        flowers.stype,
        flowers.data,
    )
    np.testing.assert_array_equal(mine.numpy(), value)


def test_transposed_arrays_keep_their_values():
    value = np.arange(12.0).reshape(3, 4).T
    np.testing.assert_array_equal(from_arrays(to_arrays({"a": value}))["a"], value)


def test_what_is_read_cannot_be_changed():
    arrays = from_arrays(to_arrays({"a": np.ones(3)}))
    with pytest.raises(ValueError, match="read-only"):
        arrays["a"][0] = 2.0


def test_missing_numbers_are_named():
    content = RecordDict({"metrics": to_metrics({"loss": 0.5, "scores": [1.0, 2.0]})})
    assert number(content, "loss") == 0.5
    assert numbers(content, "scores") == [1.0, 2.0]
    for ask, key in ((number, "scores"), (numbers, "loss"), (number, "other")):
        with pytest.raises(ProtocolError, match=key):
            ask(content, key)
    with pytest.raises(ProtocolError):
        number(RecordDict({"metrics": MetricRecord({})}), "loss")
