import numpy as np
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fedlap_app.errors import ConfigError
from fedlap_app.spectral.start import _hkdf, start_block

SECRET = bytes(range(32))


def test_key_derivation_is_hkdf():
    theirs = HKDF(hashes.SHA256(), 16, None, b"info").derive(SECRET)
    assert _hkdf(SECRET, b"info") == theirs


def test_block_depends_on_the_secret_and_the_job_only():
    block = start_block(SECRET, "job", 500, 3, 500)
    assert (block == start_block(SECRET, "job", 500, 3, 500)).all()
    for other in (
        start_block(SECRET, "other", 500, 3, 500),
        start_block(SECRET[::-1], "job", 500, 3, 500),
    ):
        assert abs(np.sum(block[:, 0] * other[:, 0])) < 0.2


def test_columns_have_a_norm_of_about_one():
    block = start_block(SECRET, "job", 4000, 5, 4000)
    assert np.linalg.norm(block, axis=0) == pytest.approx(np.ones(5), abs=0.05)


def test_short_secret_is_refused():
    with pytest.raises(ConfigError, match="16"):
        start_block(b"seed", "job", 1, 1, 1)
