import numpy as np
import pytest

from fedlap_app.sums.ckks import ciphertexts, keys, packing, workers
from fedlap_app.sums.ckks.parameters import CKKS_2048

SEED = b"s" * 32


@pytest.fixture
def two_processes(monkeypatch):
    monkeypatch.setattr(workers, "LEAST", 2)
    workers.use_processes(2)
    yield
    workers.use_processes(1)


def test_processes_make_the_same_sums_and_never_the_same_ciphertext(two_processes):
    values = np.random.default_rng(0).normal(size=(5, CKKS_2048.degree))
    public = keys.new_public_key(SEED, CKKS_2048)
    words = ciphertexts.encrypt(packing.encode(values, CKKS_2048), public, CKKS_2048)
    opened = ciphertexts.decrypt(words, keys.decryptor(SEED, CKKS_2048), CKKS_2048)
    np.testing.assert_allclose(opened, values, rtol=0, atol=1e-8)
    assert len({word.tobytes() for word in words[:, 1]}) == 5
    assert workers._pools
