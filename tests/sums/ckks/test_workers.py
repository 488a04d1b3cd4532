import numpy as np
import pytest

from fedlap_app.sums.ckks import coefficients, workers
from fedlap_app.sums.ckks.coefficients import Coefficients
from fedlap_app.sums.ckks.parameters import CKKS_2048

SECRETS = [b"s" * 32] * 5


@pytest.fixture
def two_processes(monkeypatch):
    monkeypatch.setattr(workers, "LEAST", 2)
    workers.use_processes(2)
    yield
    workers.use_processes(1)


def test_processes_make_the_same_sums_and_never_the_same_ciphertext(two_processes):
    held, rng = Coefficients(CKKS_2048), np.random.default_rng(0)
    words = rng.integers(0, 1 << CKKS_2048.word_bits, 5 * CKKS_2048.degree, dtype=np.uint64)
    zeros, seeds = coefficients.zeros(SECRETS, CKKS_2048)
    total = held.add(held.encode(words), zeros.reshape(-1))
    opened = coefficients.unseal(total, [(SECRETS[0], seeds)], CKKS_2048)
    assert (held.decode(opened) == words).all()
    assert len(set(seeds)) == 5
    assert workers._pools
