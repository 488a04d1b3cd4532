"""SEAL's objects as arrays, and back: the binding saves to and loads from a path only.

A saved object has a header of 16 bytes (magic, sizes, version, compression, total size) and then
its content, which `save` compresses with zstd and `load` takes uncompressed as well. A ciphertext's
content is the id of its parameters, whether it is in NTT form, three sizes, scale and correction
factor (73 bytes), and an array that has a header and a count of its own; a seeded one has only the
first polynomial there, and the kind and seed of a generator after it. A secret key's content is
that of a plaintext: id, coefficient count, scale (48 bytes), and an array.
"""

import os
import struct
import tempfile
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks.parameters import Parameters, load_seal

Words = NDArray[np.uint64]

_HEADER = struct.Struct("<6sHQ")
_FACTS = struct.Struct("<BQQQdQ")
_COMPRESSION = 5
SEED_BYTES = 65  # kind of the generator and 64 bytes
SEED_ROOM = 72
LARGEST = 16
"""Polynomials of a ciphertext that SEAL takes."""
_LOCAL = threading.local()
_INTO, _OUT_OF = "into", "out_of"


class SealFiles:
    """Reads and writes SEAL's objects of one choice of parameters.

    Parameters
    ----------
    parameters : Parameters
        Degree and prime.
    """

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = parameters
        self._seal = load_seal()
        self._context = parameters.context
        self._id = struct.pack("<4Q", *self._context.first_parms_id())
        sample = self._seal.Plaintext()
        # The version of the format is that of the library.
        self._start = saved_bytes(sample)[:_COMPRESSION] + b"\0"
        self._codec = zstd()

    def words(self, ciphertext: Any, size: int = 2) -> Words:  # noqa: ANN401
        """All polynomials of a ciphertext, (size, N)."""
        count = size * self.parameters.degree
        content = self._content(ciphertext, self._before_array + 8 * count)
        return np.frombuffer(content, "<u8", count, self._before_array).reshape(size, -1)

    def seeded_words(self, serializable: Any) -> tuple[Words, bytes]:  # noqa: ANN401
        """First polynomial and seed of a seeded ciphertext or public key."""
        count = self.parameters.degree
        end = self._before_array + 8 * count
        content = self._content(serializable, end + _HEADER.size + SEED_BYTES)
        first = np.frombuffer(content, "<u8", count, self._before_array)
        return first, bytes(memoryview(content)[end + _HEADER.size :])

    def ciphertext(self, words: Words, *, ntt: bool) -> Any:  # noqa: ANN401
        """Ciphertext of two polynomials, or of as many as there are, `LARGEST` at most."""
        facts = self._facts(ntt, len(words))
        return self._load(self._seal.Ciphertext(), facts, self._array(words))

    def expanded(self, first: Words, seed: bytes) -> Any:  # noqa: ANN401
        """Ciphertext in NTT form of a first polynomial and a seed."""
        return self._load(self._seal.Ciphertext(), *self._seeded(first, seed))

    def secret_key(self, words: Words) -> Any:  # noqa: ANN401
        """Secret key of a polynomial in NTT form."""
        facts = self._id + struct.pack("<Qd", words.size, 1.0)
        try:
            return self._load(self._seal.SecretKey(), facts, self._array(words))
        finally:
            os.ftruncate(_room(_INTO)[0], 0)

    @property
    def _before_array(self) -> int:
        return len(self._id) + _FACTS.size + _HEADER.size + 8

    def _facts(self, ntt: bool, size: int = 2) -> bytes:
        degree, scale = self.parameters.degree, self.parameters.scale
        return self._id + _FACTS.pack(ntt, size, degree, 1, scale, 1)

    def _seeded(self, first: Words, seed: bytes) -> tuple[bytes, bytes, bytes]:
        if len(seed) != SEED_BYTES:
            raise ProtocolError(
                f"A seed has {len(seed)} bytes where {SEED_BYTES} were expected; it was altered."
            )
        return self._facts(True), self._array(first), self._framed(seed)

    def _array(self, words: Words) -> bytes:
        content = np.ascontiguousarray(words, dtype="<u8").tobytes()
        return self._framed(struct.pack("<Q", words.size) + content)

    def _framed(self, content: bytes) -> bytes:
        return _HEADER.pack(self._start, 0, _HEADER.size + len(content)) + content

    def _content(self, saved: Any, size: int) -> Any:  # noqa: ANN401
        """Content of an object, whose size is known."""
        data = memoryview(saved_bytes(saved))[_HEADER.size :]
        return self._codec.decompress(data, decompressed_size=size)

    def _load(self, empty: Any, *parts: bytes) -> Any:  # noqa: ANN401
        """Fill an empty object; SEAL checks that it is valid for the parameters."""
        # Pages of the file are written over; SEAL reads as far as the content says.
        handle, path = _room(_INTO)
        os.pwrite(handle, self._framed(b"".join(parts)), 0)
        try:
            empty.load(self._context, path)
        except (RuntimeError, ValueError):
            raise ProtocolError(
                "SEAL refuses a ciphertext or a key: it was altered or made with other parameters."
            ) from None
        return empty


def saved_bytes(thing: Any) -> bytes:  # noqa: ANN401
    """What an object of SEAL writes into a file."""
    handle, path = _room(_OUT_OF)
    thing.save(path)
    found = os.pread(handle, os.fstat(handle).st_size, 0)
    os.ftruncate(handle, 0)  # it may be a secret key
    return found


def _room(way: str) -> tuple[int, str]:
    """A file in memory, one a way for each thread."""
    found: tuple[int, str] | None = getattr(_LOCAL, way, None)
    if found is None:
        found = _file_in_memory()
        setattr(_LOCAL, way, found)
    return found


def _leave_room() -> None:
    """Let a process that was forked have files of its own: its siblings write into the others."""
    for way in (_INTO, _OUT_OF):
        setattr(_LOCAL, way, None)


os.register_at_fork(after_in_child=_leave_room)


def _file_in_memory() -> tuple[int, str]:
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("seal", os.MFD_CLOEXEC)
        return handle, f"/proc/self/fd/{handle}"
    path = Path(tempfile.mkdtemp()) / "seal"  # only its owner enters the folder
    return os.open(path, os.O_RDWR | os.O_CREAT, 0o600), str(path)


def zstd() -> Any:  # noqa: ANN401
    """The compression of saved objects."""
    import pyarrow

    return pyarrow.Codec("zstd")


@lru_cache(maxsize=8)
def seal_files(parameters: Parameters) -> SealFiles:
    """Files of some parameters; made once a process."""
    return SealFiles(parameters)
