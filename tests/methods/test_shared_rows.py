"""Rows under opaque names: averages by hand and refusals."""

import numpy as np
import pytest

from fedlap_app.errors import RunError
from fedlap_app.methods.shared_rows import average, places_of, start_table

A, B, C = (bytes([code]) * 16 for code in b"abc")


@pytest.fixture
def places():
    """`one` holds a and b, `two` holds c and b."""
    return places_of("job", {"two": C + B, "one": A + B})


def rows_of(places, table, member):
    return table[places.of[member]]


def test_copies_of_a_row_are_one_row(places):
    table = start_table(len(places.holders), 2, seed=0)
    assert table.dtype == np.float32
    assert table.shape == (3, 2)
    assert places.shared == 1
    np.testing.assert_array_equal(
        rows_of(places, table, "one")[1], rows_of(places, table, "two")[1]
    )


def test_the_first_rows_follow_from_the_seed():
    np.testing.assert_array_equal(start_table(3, 2, 0), start_table(3, 2, 0))
    assert not np.array_equal(start_table(3, 2, 0), start_table(3, 2, 1))


def test_copies_are_averaged_with_equal_weights(places):
    copies = {
        "one": np.array([[1.0, 2.0], [3.0, 4.0]]),
        "two": np.array([[5.0, 6.0], [7.0, 0.0]]),
    }
    start = start_table(3, 2, 0)
    table = average(places, start, copies)
    np.testing.assert_array_equal(rows_of(places, table, "one"), [[1.0, 2.0], [5.0, 2.0]])
    np.testing.assert_array_equal(rows_of(places, table, "two"), [[5.0, 6.0], [5.0, 2.0]])
    np.testing.assert_array_equal(start, start_table(3, 2, 0))


def test_rows_of_the_absent_stay_and_copies_of_the_present_count(places):
    start = start_table(3, 2, 0)
    table = average(places, start, {"one": np.array([[1.0, 2.0], [3.0, 4.0]])})
    np.testing.assert_array_equal(rows_of(places, table, "one"), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(rows_of(places, table, "two")[1], [3, 4])
    np.testing.assert_array_equal(
        rows_of(places, table, "two")[0], rows_of(places, start, "two")[0]
    )


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        (np.ones((3, 2)), r"two returned rows of shape \(3, 2\) .* where \(2, 2\) floats"),
        (np.ones((2, 2), int), "two returned rows of shape .* type int64"),
        (np.full((2, 2), np.nan), "two returned rows with values that are not finite"),
        (np.full((2, 2), np.inf), "two returned rows with values that are not finite"),
    ],
)
def test_wrong_rows_are_told(places, bad, sentence):
    with pytest.raises(RunError, match=sentence):
        average(places, start_table(3, 2, 0), {"one": np.ones((2, 2)), "two": bad})


@pytest.mark.parametrize(
    ("names", "sentence"),
    [(A + b"x", "no multiple of 16"), (b"", "0 bytes"), (A + A, "two of its rows alike")],
)
def test_wrong_names_are_told(names, sentence):
    with pytest.raises(RunError, match=f"one .*{sentence}"):
        places_of("job", {"one": names})
