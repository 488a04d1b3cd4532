"""Key pairs: a secret key follows from a seed, a public key is drawn for it.

Every member derives the key of its block sums from the secret of the job, and the key of small sums
from the group key, so that nothing else has to be stored or sent. A public key is
(-(a s + e), a) with a fresh error e and the second polynomial as a seed: half the bytes. It travels
in the channels between members only.
"""

from functools import lru_cache
from hashlib import sha256, shake_256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks import bits
from fedlap_app.sums.ckks.parameters import Parameters, load_seal
from fedlap_app.sums.ckks.seal_files import SEED_BYTES, SEED_ROOM, seal_files

_KEYS = 256
_THREES = 255
KEY_ID_BYTES = 8


def public_key_bytes(parameters: Parameters) -> int:
    """Bytes of a public key."""
    return SEED_ROOM + parameters.polynomial_bytes


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


def new_public_key(seed: bytes, parameters: Parameters) -> bytes:
    """A public key for the secret key of a seed; a new one at every call."""
    # A public key is an encryption of zero; the binding gives no seeded one otherwise.
    zero = symmetric_encryptor(seed, parameters).encrypt_zero_symmetric()
    first, drawn = seal_files(parameters).seeded_words(zero)
    packed = bits.pack(first[None], parameters.bits)
    return drawn.ljust(SEED_ROOM, b"\0") + packed.tobytes()


@lru_cache(maxsize=_KEYS)
def public_encryptor(public: bytes, parameters: Parameters) -> Any:  # noqa: ANN401
    """SEAL's encryptor for a public key."""
    if len(public) != public_key_bytes(parameters):
        raise ProtocolError(
            f"A public key has {len(public)} bytes where {public_key_bytes(parameters)} were "
            "expected; all members must use one profile."
        )
    files = seal_files(parameters)
    first = bits.unpack(np.frombuffer(public, "<u8", offset=SEED_ROOM)[None], parameters.bits)[0]
    key = files.public_key(first, public[:SEED_BYTES])
    return load_seal().Encryptor(parameters.context, key)


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
