import numpy as np
import pytest

from fedlap_app.sums.ckks import packing
from fedlap_app.sums.ckks.parameters import PARAMETERS, load_seal
from fedlap_app.sums.ckks.seal_files import seal_files


@pytest.fixture(params=PARAMETERS.values(), ids=PARAMETERS)
def parameters(request):
    return request.param


def test_the_coefficients_are_those_of_seal(parameters):
    """SEAL encodes the same complex slots to the same polynomial, but for rounding."""
    seal, half = load_seal(), parameters.degree // 2
    values = np.random.default_rng(0).normal(size=(1, parameters.degree))
    plain, files = seal.Plaintext(), seal_files(parameters)
    slots = values[0, :half] + 1j * values[0, half:]
    seal.CKKSEncoder(parameters.context).encode(list(slots), parameters.scale, plain)
    content = files._content(plain, 72 + 8 * parameters.degree)
    transformed = np.frombuffer(content, "<u8", offset=72)
    pair = files.ciphertext(np.stack([transformed, transformed]), ntt=True)
    seal.Evaluator(parameters.context).transform_from_ntt_inplace(pair)
    theirs, ours = files.words(pair)[0], packing.encode(values, parameters)[0]
    difference = (ours - theirs).view(np.int64)
    wrapped = np.minimum(np.abs(difference), np.abs(parameters.modulus - np.abs(difference)))
    assert wrapped.max() <= 1


def test_a_value_at_the_limit_does_not_wrap(parameters):
    """The signs that make one coefficient largest leave it within half of the prime."""
    half = parameters.degree // 2
    slots, signs, turns = packing._embedding(parameters.degree, parameters.scale)
    for index in (0, 1, half // 3):
        # Coefficient `index` is linear in the values, with these factors.
        factors = turns[index] * np.exp(-2j * np.pi * np.arange(half) * index / half)
        worst = np.empty((1, parameters.degree))
        worst[0, slots] = np.sign(factors.real)
        worst[0, half + slots] = -np.sign(factors.imag) * signs
        found = packing.encode(parameters.limit * worst, parameters)[0, index].view(np.int64)
        bound = parameters.limit * (np.abs(factors.real) + np.abs(factors.imag)).sum()
        assert abs(int(found) - bound) < 1e4
        assert bound < parameters.modulus / 2
    assert bound > 0.95 * parameters.modulus / 2
