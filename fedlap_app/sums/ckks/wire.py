"""Form of a contribution and of a sum on the wire: a tag, then residues without gaps.

The server parses nothing but the tag. Ciphertexts are told from anything else by it and by their
length: their residues look like any others.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks import bits
from fedlap_app.sums.ckks.parameters import Parameters
from fedlap_app.sums.ckks.seal_files import SEED_BYTES, SEED_ROOM

Words = NDArray[np.uint64]

PAIRS = 1
SEEDED = 2
VECTORS = 3  # objects of TenSEAL, which the server's TenSEAL parses
WORDS = 4
_SIZE = 2
_MAGIC = b"CK"
_TAG = struct.Struct("<2sBBHH8s")
_SEAL_MAGIC = b"\x5e\xa1"
_WORD = 8
TAG_BYTES = _TAG.size


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


@dataclass(frozen=True)
class Form:
    """What ciphertexts of one sum look like.

    Attributes
    ----------
    parameters
        The agreed parameters.
    count
        Ciphertexts.
    kind
        `PAIRS`: two polynomials each; `SEEDED`: one, and the seed of the other.
    """

    parameters: Parameters
    count: int
    kind: int

    @property
    def words(self) -> int:
        """Words of 8 bytes, with the tag."""
        each = self.polynomials * self.parameters.polynomial_bytes
        each += SEED_ROOM if self.kind == SEEDED else 0
        return (_TAG.size + self.count * each) // _WORD

    @property
    def polynomials(self) -> int:
        """Polynomials of each ciphertext that are there."""
        return 2 if self.kind == PAIRS else 1

    def write(self, key: bytes, packed: Words, seeds: Sequence[bytes] = ()) -> tuple[bytes, ...]:
        """All bytes of ciphertexts, from their packed residues."""
        drawn = (seed.ljust(SEED_ROOM, b"\0") for seed in seeds)
        return tag(self.parameters, self.kind, key), *drawn, packed.tobytes()

    def read(self, data: Words) -> tuple[bytes, Words, list[bytes]]:
        """Key id, packed residues (count, words) and seeds; anything else is refused."""
        key = read_tag(data[: _TAG.size // _WORD].tobytes(), self.parameters, self.kind)
        at, seeds = _TAG.size // _WORD, []
        if self.kind == SEEDED:
            end = at + self.count * SEED_ROOM // _WORD
            rows = data[at:end].reshape(self.count, -1)
            at, seeds = end, [row.tobytes()[:SEED_BYTES] for row in rows]
        return key, data[at:].reshape(self.count, -1), seeds


def pack_all(sums: Sequence[Words], parameters: Parameters) -> list[Words]:
    """Packed residues of the ciphertexts of some sums; all at once, which is quicker."""
    return _by_polynomials(sums, parameters.degree, lambda each: bits.pack(each, parameters.bits))


def unpack_all(sums: Sequence[Words], parameters: Parameters) -> list[Words]:
    """Residues of the ciphertexts of some sums; what is no residue is refused."""
    width = parameters.polynomial_bytes // _WORD
    return _by_polynomials(sums, width, lambda each: unpack(each, parameters))


def unpack(packed: Words, parameters: Parameters) -> Words:
    """Residues of packed rows; what is no residue is refused."""
    residues = bits.unpack(packed, parameters.bits)
    if residues.size and int(residues.max()) >= parameters.modulus:
        raise ProtocolError(
            "A ciphertext has a coefficient that is no residue of the agreed prime; it was "
            "altered or made with other parameters."
        )
    return residues


def _by_polynomials(
    sums: Sequence[Words], width: int, change: Callable[[Words], Words]
) -> list[Words]:
    """Change the polynomials of some sums together; gives the ciphertexts of each."""
    rows = [each.reshape(-1, width) for each in sums]
    changed = change(rows[0] if len(rows) == 1 else np.concatenate(rows))
    ends = np.cumsum([len(each) for each in rows])
    parts = np.split(changed, ends[:-1])
    return [part.reshape(len(each), -1) for part, each in zip(parts, sums, strict=True)]
