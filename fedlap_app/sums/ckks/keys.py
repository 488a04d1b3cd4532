"""Secret keys of ciphertexts, which follow from secrets that two members share, or all of them.

So nothing else has to be stored or sent, and there is no public key that could be exchanged.
"""

from functools import lru_cache
from hashlib import sha256, shake_256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.sums.ckks.parameters import Parameters, load_seal
from fedlap_app.sums.ckks.seal_files import seal_files

_KEYS = 256
_THREES = 255
KEY_ID_BYTES = 8


@lru_cache(maxsize=_KEYS)
def secret_key(seed: bytes, parameters: Parameters) -> Any:  # noqa: ANN401 - SEAL has no types
    """The secret key of a seed: coefficients -1, 0 and 1, equally likely."""
    digits = _ternary(seed, parameters.degree)
    residues = np.where(digits == 2, np.uint64(parameters.modulus - 1), digits.astype(np.uint64))
    files = seal_files(parameters)
    # SEAL transforms ciphertexts only; the second polynomial is not used.
    pair = files.ciphertext(np.stack([residues, residues]), ntt=False)
    load_seal().Evaluator(parameters.context).transform_to_ntt_inplace(pair)
    return files.secret_key(files.words(pair)[0])


@lru_cache(maxsize=_KEYS)
def symmetric_encryptor(seed: bytes, parameters: Parameters) -> Any:  # noqa: ANN401
    """SEAL's encryptor for the secret key of a seed."""
    return load_seal().Encryptor(parameters.context, secret_key(seed, parameters))


@lru_cache(maxsize=_KEYS)
def decryptor(seed: bytes, parameters: Parameters) -> Any:  # noqa: ANN401
    """SEAL's decryptor for the secret key of a seed."""
    return load_seal().Decryptor(parameters.context, secret_key(seed, parameters))


def key_id(key: bytes) -> bytes:
    """Public name of a key: says nothing about it."""
    return sha256(b"fedlap ckks key id" + key).digest()[:KEY_ID_BYTES]


def _ternary(seed: bytes, count: int) -> NDArray[np.uint8]:
    """Uniform digits 0, 1 and 2."""
    # A byte of 255 would make 0 likelier; of 2 N bytes more than N are left.
    drawn = np.frombuffer(shake_256(b"fedlap ckks secret" + seed).digest(2 * count), np.uint8)
    digits: NDArray[np.uint8] = drawn[drawn < _THREES][:count] % 3
    return digits
