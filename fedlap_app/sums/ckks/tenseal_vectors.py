"""`ckks_vector` objects as bytes of one length, with pads inside.

A serialised vector is a protocol buffer: its number of slots (1), one ciphertext as SEAL saves it
(2), and the scale (3). All but the ciphertext is the same in every vector, and must be. SEAL
compresses the ciphertext to a length that varies a little; it is filled up, so that lengths tell
nothing.
"""

import struct
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks.seal_files import zstd
from fedlap_app.sums.ckks.tenseal_contexts import (
    field,
    from_room,
    in_room,
    keyless,
    load_tenseal,
    varint,
)
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT

VECTOR_BYTES = 336_000
"""Room for a vector: 332,300 bytes were the most seen, with a deviation of 300."""

SIZE = 2
_SEAL_HEADER = struct.Struct("<8sQ")
_SEAL_FACTS = 32 + 41 + 16 + 8
_WORDS = SIZE * len(TENSEAL_DEFAULT.primes[:-1]) * TENSEAL_DEFAULT.degree
_BEGIN = field(1, varint(TENSEAL_DEFAULT.slots))
_END = b"\x19" + struct.pack("<d", TENSEAL_DEFAULT.scale)
_CIPHERTEXT = 2

Words = NDArray[np.uint64]


def encrypt(numbers: NDArray[np.float64], context: Any, pad: Words | None) -> bytes:  # noqa: ANN401
    """One vector of as many numbers as there are slots, filled up.

    Parameters
    ----------
    numbers
        Real numbers.
    context
        With a public key.
    pad
        Residues (primes, N) that are added to the plaintext.
    """
    data = load_tenseal().ckks_vector(context, numbers.tolist()).serialize()
    if pad is not None:
        data = _vector(_padded(_ciphertext(data), pad))
    return in_room(data, VECTOR_BYTES)


def read(data: bytes) -> Any:  # noqa: ANN401 - tenseal has no types
    """The vector that a room holds, without any key; anything else is refused."""
    return _load(data, keyless())


def write(vector: Any) -> bytes:  # noqa: ANN401
    """A vector, filled up."""
    return in_room(vector.serialize(), VECTOR_BYTES)


def decrypt(rooms: Iterable[bytes], context: Any) -> NDArray[np.float64]:  # noqa: ANN401
    """Numbers of vectors, with a context that has the secret key."""
    return np.concatenate([_load(room, context).decrypt() for room in rooms])


def _load(room: bytes, context: Any) -> Any:  # noqa: ANN401
    data = from_room(room)
    _ciphertext(data)
    try:
        vector = load_tenseal().ckks_vector_from(context, data)
        found = vector.ciphertext()
    except (RuntimeError, ValueError):
        raise ProtocolError(
            "TenSEAL refuses a ciphertext: it was altered or made with other parameters."
        ) from None
    if len(found) != 1 or found[0].size() != SIZE or found[0].is_transparent():
        raise ProtocolError(
            f"A vector has {len(found)} ciphertexts that are not all of {SIZE} polynomials, or "
            "hides nothing; it is never added."
        )
    return vector


def _vector(ciphertext: bytes) -> bytes:
    return _BEGIN + field(_CIPHERTEXT, ciphertext) + _END


def _ciphertext(data: bytes) -> bytes:
    """The only thing in a serialised vector that may differ from any other."""
    start = len(_BEGIN) + len(field(_CIPHERTEXT, b"")) + 2
    found = data[start : -len(_END)]
    if _vector(found) != data:
        raise ProtocolError(
            "What came is no ckks_vector of the agreed length and scale; a key, a plaintext, a "
            "context or junk is never added."
        )
    return found


def _padded(ciphertext: bytes, pad: Words) -> bytes:
    """The ciphertext with a pad on its first polynomial, which is in NTT form like the pad."""
    codec = zstd()
    size = _SEAL_FACTS + 8 * _WORDS
    content = codec.decompress(memoryview(ciphertext)[_SEAL_HEADER.size :], decompressed_size=size)
    content = np.frombuffer(bytearray(content), np.uint8)
    words = content[_SEAL_FACTS:].view("<u8").reshape(SIZE, *pad.shape)
    moduli = np.array(TENSEAL_DEFAULT.moduli, dtype=np.uint64)[:, None]
    words[0] += pad
    np.minimum(words[0], words[0] - moduli, out=words[0])
    packed = bytes(codec.compress(content, asbytes=True))
    start = _SEAL_HEADER.unpack_from(ciphertext)[0]
    return _SEAL_HEADER.pack(start, _SEAL_HEADER.size + len(packed)) + packed
