"""Narrow numbers side by side: sums and differences without a carry between them."""

import numpy as np
import pytest

from fedlap_app.sums.lanes import WIDTHS, Lanes


@pytest.mark.parametrize("bits", WIDTHS)
def test_they_add_and_subtract_modulo_their_own_power_of_two(bits):
    lanes, draw = Lanes(bits), np.random.default_rng(bits)
    one, other = (draw.integers(-lanes.most, lanes.most, 37) for _ in range(2))
    words = lanes.words(one.astype(float))
    assert words.size == -(-37 // lanes.per_word)
    assert np.array_equal(lanes.numbers(words)[:37], one)
    noise = draw.integers(0, 2**64, words.size, dtype="<u8")  # all bits of a pad, gaps as well
    lanes.add(words, noise)
    lanes.add(words, lanes.words(other.astype(float)))
    lanes.subtract(words, noise)
    wrapped = (one + other + lanes.most) % (2 * lanes.most) - lanes.most
    assert np.array_equal(lanes.numbers(words)[:37], wrapped)
    lanes.subtract(words, lanes.words(other.astype(float)))
    assert np.array_equal(lanes.numbers(words)[:37], one)


def test_nothing_lies_in_the_gap_of_short_ones():
    lanes, noise = Lanes(12), np.full(3, 2**64 - 1, dtype="<u8")
    words = lanes.words(np.arange(15.0))
    lanes.add(words, noise)
    assert lanes.unused(words)
    assert not lanes.unused(noise)
    lanes.subtract(words, noise)
    assert lanes.unused(words)
