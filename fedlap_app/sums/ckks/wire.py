"""Form of a contribution and of a sum on the wire: a tag, then residues without gaps.

The server parses nothing but the tag. Ciphertexts are told from anything else by it and by their
length: their residues look like any others.
"""

import struct
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks import bits
from fedlap_app.sums.ckks.parameters import Parameters

Words = NDArray[np.uint64]

VECTORS = 3  # objects of TenSEAL, which the server's TenSEAL parses
WORDS = 4
_SIZE = 2
_MAGIC = b"CK"
_TAG = struct.Struct("<2sBBHH8s")
_SEAL_MAGIC = b"\x5e\xa1"
TAG_BYTES = _TAG.size
STEP = 64
"""Residues are sent by so many: they fill whole words."""


class Ring(Protocol):
    """What a tag says about parameters."""

    @property
    def degree(self) -> int:
        """N."""

    @property
    def bits(self) -> int:
        """Bits of the modulus."""


def tag(ring: Ring, kind: int, key: bytes) -> bytes:
    """First bytes of ciphertexts, with the id of their key."""
    return _TAG.pack(_MAGIC, kind, _SIZE, ring.degree, ring.bits, key)


def read_tag(found: bytes, ring: Ring, kind: int) -> bytes:
    """Key id of a tag; anything but ciphertexts of the agreed form is refused."""
    if found[:2] == _SEAL_MAGIC:
        raise ProtocolError(
            "An object of SEAL came where ciphertexts were expected; keys and plaintexts "
            "never belong here."
        )
    magic, *got, key = _TAG.unpack(found)
    if magic != _MAGIC:
        raise ProtocolError(
            "What came is no ciphertext of this protocol; a key, a plaintext, a context or "
            "junk is never added."
        )
    agreed = (kind, _SIZE, ring.degree, ring.bits)
    names = ("form", "size", "degree", "bits of the prime")
    for name, have, want in zip(names, got, agreed, strict=True):
        if have != want:
            raise ProtocolError(
                f"A ciphertext has {name} {have} where {want} was agreed; it is never added."
            )
    return bytes(key)


def pack(residues: Words, parameters: Parameters) -> Words:
    """Residues packed by 64, a row for each."""
    return bits.pack(residues.reshape(-1, STEP), parameters.bits)


def unpack(packed: Words, parameters: Parameters) -> Words:
    """Residues of packed words, one after the other; what is no residue is refused."""
    residues = bits.unpack(packed.reshape(-1, STEP * parameters.bits // 64), parameters.bits)
    if residues.size and int(residues.max()) >= parameters.modulus:
        raise ProtocolError(
            "A ciphertext has a coefficient that is no residue of the agreed prime; it was "
            "altered or made with other parameters."
        )
    return residues.reshape(-1)
