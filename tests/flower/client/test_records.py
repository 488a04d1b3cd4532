import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.records import (
    ReadInPlace,
    from_arrays,
    number,
    numbers,
    read_in_place,
    to_arrays,
    to_metrics,
)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arrays_read_in_place_are_those_that_were_sent(dtype):
    value = np.arange(6, dtype=dtype).reshape(2, 3)
    ours, flowers = to_arrays({"a": value}), ArrayRecord({"a": Array(value)})
    for record in (ours, flowers):
        read_in_place(record)
        np.testing.assert_array_equal(record["a"].numpy(), value)
        assert record["a"].numpy().dtype == dtype


@pytest.mark.parametrize(
    ("shape", "data"),
    [((3,), lambda data: data[:-4]), ((2,), lambda data: data), ((3,), lambda data: b"junk")],
)
def test_an_array_with_a_false_shape_or_content_is_read_as_flower_reads_it(shape, data):
    true = Array(np.ones(3, dtype=np.float32))
    false = Array(true.dtype, shape, true.stype, data(true.data))
    try:
        wanted = false.numpy()
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            ReadInPlace(false).numpy()
    else:
        np.testing.assert_array_equal(ReadInPlace(false).numpy(), wanted)


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
