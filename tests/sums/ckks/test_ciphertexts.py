import numpy as np
import pytest

from fedlap_app.sums.ckks import ciphertexts, keys, packing
from fedlap_app.sums.ckks.parameters import PARAMETERS

SEED = b"s" * 32


@pytest.fixture(params=PARAMETERS.values(), ids=PARAMETERS)
def parameters(request):
    return request.param


def fresh(plain, parameters, *, symmetric):
    if not symmetric:
        public = keys.new_public_key(SEED, parameters)
        return ciphertexts.encrypt(plain, public, parameters)
    first, seeds = ciphertexts.encrypt_seeded(
        plain, keys.symmetric_encryptor(SEED, parameters), parameters
    )
    second = [ciphertexts.expand(seed, parameters) for seed in seeds]
    return np.stack([first, np.stack(second)], axis=1)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("count", [1, 20])
def test_the_error_of_a_sum_is_what_theory_says(parameters, symmetric, count):
    rng = np.random.default_rng(count)
    values = rng.normal(size=(count, parameters.degree))
    words = fresh(packing.encode(values, parameters), parameters, symmetric=symmetric)
    total = words.astype(object).sum(axis=0) % parameters.modulus
    opened = ciphertexts.decrypt(
        total.astype(np.uint64)[None], keys.decryptor(SEED, parameters), parameters
    )
    error = opened[0] - values.sum(axis=0)
    sigma = parameters.noise(count, symmetric=symmetric)
    assert 0.85 * sigma < error.std() < 1.15 * sigma
    assert np.abs(error).max() < (6 if symmetric else 16) * sigma


def test_the_errors_of_the_design_are_met():
    parameters = PARAMETERS["ckks-2048"]
    assert 6 * parameters.noise(20, symmetric=False) < 8.5e-9
    assert 4 * parameters.noise(20, symmetric=True) < 1.1e-10


def test_two_encryptions_of_one_plaintext_differ(parameters):
    """The randomness of encryption comes from the operating system, not from a seed."""
    plain = packing.encode(np.zeros((2, parameters.degree)), parameters)
    for symmetric in (False, True):
        one = fresh(plain, parameters, symmetric=symmetric)
        assert len({one[i, j].tobytes() for i in range(2) for j in range(2)}) == 4
    assert keys.new_public_key(SEED, parameters) != keys.new_public_key(SEED, parameters)


def test_another_key_opens_noise(parameters):
    words = fresh(
        packing.encode(np.zeros((1, parameters.degree)), parameters), parameters, symmetric=False
    )
    other = keys.decryptor(b"t" * 32, parameters)
    assert np.abs(ciphertexts.decrypt(words, other, parameters)).mean() > 100


def test_a_secret_key_is_ternary_and_follows_from_its_seed(parameters):
    digits = keys._ternary(SEED, parameters.degree)
    counts = np.bincount(digits, minlength=3)
    assert counts.sum() == parameters.degree
    assert np.abs(counts / parameters.degree - 1 / 3).max() < 0.05
    assert (keys._ternary(b"t" * 32, parameters.degree) != digits).any()
