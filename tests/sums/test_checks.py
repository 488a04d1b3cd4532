import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.checks import PRIME, Weights, fill, verify

KEY = b"w" * 32
ONE = 2**63 + 12345


def reference(key, words):
    """The same product in Python's own integers."""
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    weights = np.frombuffer(stream.update(bytes(8 * len(words))), "<u8")
    return sum(int(w) * int(v) for w, v in zip(weights, words, strict=True)) % PRIME


@pytest.mark.parametrize("size", [0, 1, 7, 4096, 4097, 9001])
def test_product_is_exact(size):
    words = np.random.default_rng(size).integers(-(2**60), 2**60, size, endpoint=True)
    assert Weights().use(KEY).inner_product(words) == reference(KEY, words)


def test_weights_stay_the_same_while_more_are_drawn():
    words = np.random.default_rng(1).integers(-(2**60), 2**60, 9001)
    weights = Weights()
    for key in (KEY, b"W" * 32, KEY):
        for size in (5, 4097, 100, 9001, 5):
            expected = reference(key, words[:size])
            assert weights.use(key).inner_product(words[:size]) == expected


def test_product_is_exact_at_the_bounds():
    for value in (2**60, -(2**60)):
        words = np.full(5000, value)
        assert Weights().use(KEY).inner_product(words) == reference(KEY, words)


@pytest.fixture
def honest():
    """Sum of 40 contributions, as a server would make it without pads."""
    total = np.zeros(23, dtype=np.uint64)
    for vector in np.random.default_rng(5).integers(-(2**50), 2**50, (40, 20)):
        words = np.append(vector, [0, 0, 0]).view(np.uint64)
        fill(Weights().use(KEY), ONE, words)
        total += words
    return total


def test_an_honest_sum_passes(honest):
    assert verify(Weights().use(KEY), ONE, honest, 40) is None


@pytest.mark.parametrize("power", range(64))
def test_a_change_by_any_power_of_two_is_found(honest, power):
    honest[3] += np.uint64(2**power)
    for slip in (0, 2**power, PRIME):
        altered = honest.copy()
        altered[-2] += np.uint64(slip)
        with pytest.raises(ProtocolError, match="altered"):
            verify(Weights().use(KEY), ONE, altered, 40)


@pytest.mark.parametrize("change", [PRIME, 2 * PRIME, 2**64 - PRIME])
def test_a_change_that_is_zero_modulo_the_prime_leaves_the_range(honest, change):
    honest[3] += np.uint64(change)
    with pytest.raises(ProtocolError, match="altered"):
        verify(Weights().use(KEY), ONE, honest, 40)


def test_the_lowest_number_is_out_of_the_range_too():
    """Four times the prime more makes of a 4 the only number whose opposite is itself."""
    words = np.append([4, 5], [0, 0, 0]).view(np.uint64)
    fill(Weights().use(KEY), ONE, words)
    words[0] += np.uint64(4 * PRIME)
    assert words[0] == 2**63
    with pytest.raises(ProtocolError, match="altered"):
        verify(Weights().use(KEY), ONE, words, 1)


def test_other_weights_are_found_even_for_zeros(honest):
    with pytest.raises(ProtocolError, match="altered"):
        verify(Weights().use(b"W" * 32), ONE, honest, 40)
    with pytest.raises(ProtocolError, match="altered"):
        verify(Weights().use(KEY), ONE + 1, honest, 40)
    zeros = np.zeros(5, dtype=np.uint64)
    fill(Weights().use(KEY), ONE, zeros)
    verify(Weights().use(KEY), ONE, zeros, 1)
    with pytest.raises(ProtocolError, match="altered"):
        verify(Weights().use(KEY), ONE + 1, zeros, 1)


@pytest.mark.parametrize(
    ("count", "reason"), [(41, "too few"), (39, "too many"), (2, "pads do not cancel")]
)
def test_the_number_of_contributions_is_checked(honest, count, reason):
    with pytest.raises(ProtocolError, match=reason):
        verify(Weights().use(KEY), ONE, honest, count)
