"""Form of a contribution and of a sum on the wire: a tag, then residues without gaps.

The server parses nothing but the tag. Ciphertexts are told from anything else by it and by their
length: their residues look like any others.
"""

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.ckks import bits
from fedlap_app.secure.ckks.parameters import Parameters
from fedlap_app.secure.ckks.seal_files import SEED_BYTES, SEED_ROOM

Words = NDArray[np.uint64]

PAIRS = 1
SEEDED = 2
_SIZE = 2
_MAGIC = b"CK"
_TAG = struct.Struct("<2sBBHH8s")
_SEAL_MAGIC = b"\x5e\xa1"
_WORD = 8


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
        polynomial = self.parameters.polynomial_bytes // _WORD
        each = 2 * polynomial if self.kind == PAIRS else polynomial + SEED_ROOM // _WORD
        return _TAG.size // _WORD + self.count * each

    def tag(self, key: bytes) -> bytes:
        """First bytes, with the id of the key."""
        return _TAG.pack(
            _MAGIC, self.kind, _SIZE, self.parameters.degree, self.parameters.bits, key
        )

    def write(self, key: bytes, residues: Words, seeds: list[bytes] | None = None) -> bytes:
        """All bytes of ciphertexts."""
        packed = bits.pack(residues, self.parameters.bits)
        drawn = (seed.ljust(SEED_ROOM, b"\0") for seed in seeds or ())
        return b"".join((self.tag(key), *drawn, packed.tobytes()))

    def read(self, data: NDArray[np.uint64]) -> tuple[bytes, Words, list[bytes]]:
        """Key id, residues and seeds; anything but the agreed ciphertexts is refused."""
        view = np.ascontiguousarray(data).data.cast("B")
        self._check(bytes(view[: _TAG.size]))
        at, seeds = _TAG.size, []
        if self.kind == SEEDED:
            for _ in range(self.count):
                seeds.append(bytes(view[at : at + SEED_BYTES]))
                at += SEED_ROOM
        residues = bits.unpack(np.frombuffer(view, "<u8", offset=at), self.parameters.bits)
        if residues.size and int(residues.max()) >= self.parameters.modulus:
            raise ProtocolError(
                "A ciphertext has a coefficient that is no residue of the agreed prime; it was "
                "altered or made with other parameters."
            )
        polynomials = (2,) if self.kind == PAIRS else ()
        shape = (self.count, *polynomials, self.parameters.degree)
        return bytes(view[_TAG.size - 8 : _TAG.size]), residues.reshape(shape), seeds

    def _check(self, tag: bytes) -> None:
        if tag[:2] == _SEAL_MAGIC:
            raise ProtocolError(
                "An object of SEAL came where ciphertexts were expected; keys and plaintexts "
                "never belong here."
            )
        magic, kind, size, degree, width, _ = _TAG.unpack(tag)
        if magic != _MAGIC:
            raise ProtocolError(
                "What came is no ciphertext of this protocol; a key, a plaintext, a context or "
                "junk is never added."
            )
        agreed = (self.kind, _SIZE, self.parameters.degree, self.parameters.bits)
        names = ("form", "size", "degree", "bits of the prime")
        for name, got, want in zip(names, (kind, size, degree, width), agreed, strict=True):
            if got != want:
                raise ProtocolError(
                    f"A ciphertext has {name} {got} where {want} was agreed; it is never added."
                )
