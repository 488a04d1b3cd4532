import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.fixed import from_fixed, largest, to_fixed


def fixed(values, bits=44, contributors=3):
    words = np.array(values, dtype=float)
    to_fixed(words, bits, contributors)
    return words.view(np.int64)


@given(st.lists(st.floats(-1000, 1000), max_size=30))
def test_rounding_is_to_the_nearest(values):
    words = fixed(values)
    assert words.tolist() == [round(value * 2**44) for value in values]
    np.testing.assert_allclose(from_fixed(words, 44), values, rtol=2**-52, atol=2**-45)


def test_long_vectors_are_rounded_to_their_end():
    values = np.random.default_rng(0).normal(size=20_001)
    np.testing.assert_array_equal(fixed(values), np.rint(values * 2.0**44).astype(np.int64))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**16 / 3, -(2.0**16) / 3])
def test_what_the_sum_cannot_hold_is_refused_without_showing_it(bad):
    with pytest.raises(ProtocolError, match=r"below 21845\.3") as caught:
        fixed([0.0, bad])
    assert "nan" not in str(caught.value)


def test_the_largest_values_of_all_stay_in_range():
    for contributors in (1, 2, 50):
        limit = np.nextafter(largest(44, contributors), 0)
        assert contributors * int(fixed([limit], 44, contributors)[0]) <= 2**60
