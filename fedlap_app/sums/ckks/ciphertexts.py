"""Fresh ciphertexts as arrays of residues, and back.

On the wire and in sums a ciphertext is in coefficient form. It is made from SEAL's encryption of
zero, whose first polynomial the padded plaintext is added to: that is what SEAL's `encrypt` does.
SEAL draws the randomness from the operating system, and nothing here can seed it.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks import keys, workers
from fedlap_app.sums.ckks.packing import from_slots
from fedlap_app.sums.ckks.parameters import Parameters, load_seal
from fedlap_app.sums.ckks.seal_files import seal_files

Words = NDArray[np.uint64]


def encrypt(plain: Words, public: bytes, parameters: Parameters) -> Words:
    """Ciphertexts (count, 2, N) of plaintexts (count, N) under a public key."""
    out = np.concatenate(workers.shares(encrypt_zeros, public, parameters, len(plain)))
    _add(out[:, 0], plain, parameters.modulus)
    return out


def encrypt_zeros(public: bytes, parameters: Parameters, count: int) -> Words:
    """Fresh encryptions of zero (count, 2, N) under a public key."""
    encryptor = keys.public_encryptor(public, parameters)
    files, change = seal_files(parameters), evaluator(parameters)
    out = np.empty((count, 2, parameters.degree), dtype=np.uint64)
    zero = load_seal().Ciphertext()
    for each in out:
        encryptor.encrypt_zero(zero)
        change.transform_from_ntt_inplace(zero)
        each[:] = files.words(zero)
    return out


def encrypt_seeded(
    plain: Words,
    encryptor: Any,  # noqa: ANN401
    parameters: Parameters,
) -> tuple[Words, list[bytes]]:
    """First polynomials (count, N) and seeds of ciphertexts under a secret key."""
    files, change = seal_files(parameters), evaluator(parameters)
    out, seeds = np.empty(plain.shape, dtype=np.uint64), []
    for each in out:
        first, seed = files.seeded_words(encryptor.encrypt_zero_symmetric())
        pair = files.ciphertext(np.stack([first, first]), ntt=True)
        change.transform_from_ntt_inplace(pair)
        each[:] = files.words(pair)[0]
        seeds.append(seed)
    _add(out, plain, parameters.modulus)
    return out, seeds


def expand(seed: bytes, parameters: Parameters) -> Words:
    """Second polynomial of a seeded ciphertext; needs no key."""
    files = seal_files(parameters)
    pair = files.expanded(np.ones(parameters.degree, dtype=np.uint64), seed)
    evaluator(parameters).transform_from_ntt_inplace(pair)
    second: Words = files.words(pair)[1]
    return second


def decrypt(
    words: Words,
    decryptor: Any,  # noqa: ANN401
    parameters: Parameters,
) -> NDArray[np.float64]:
    """Values (count, N) of ciphertexts (count, 2, N); pads must have cancelled."""
    seal, files = load_seal(), seal_files(parameters)
    encoder, plain = _encoder(parameters), seal.Plaintext()
    slots = np.empty((len(words), parameters.degree // 2), dtype=np.complex128)
    for each, found in zip(words, slots, strict=True):
        ciphertext = files.ciphertext(each, ntt=False)
        try:
            evaluator(parameters).transform_to_ntt_inplace(ciphertext)
            decryptor.decrypt(ciphertext, plain)
        except (RuntimeError, ValueError):
            raise ProtocolError("A sum cannot be decrypted; it was altered on its way.") from None
        found[:] = encoder.decode_complex(plain)
    return from_slots(slots)


def _add(words: Words, plain: Words, modulus: int) -> None:
    """Add residues in place."""
    words += plain
    np.minimum(words, words - np.uint64(modulus), out=words)


@lru_cache(maxsize=8)
def evaluator(parameters: Parameters) -> Any:  # noqa: ANN401
    """SEAL's evaluator, which adds and transforms."""
    return load_seal().Evaluator(parameters.context)


@lru_cache(maxsize=8)
def _encoder(parameters: Parameters) -> Any:  # noqa: ANN401
    return load_seal().CKKSEncoder(parameters.context)
