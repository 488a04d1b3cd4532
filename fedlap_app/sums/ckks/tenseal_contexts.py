"""TenSEAL's contexts with one key each, or none, from keys that follow from a seed.

`tenseal.context` draws its own keys, but all members must hold one secret key of small sums. So
keys are made by SEAL and put into the serialised form that `tenseal.context_from` reads, a protocol
buffer: parameters (1), a public part (2: public key 1, flags 2, scale 3) and a private one
(3: secret key 1). Relinearisation and Galois keys are not needed for additions and left out.
"""

import struct
from functools import lru_cache
from hashlib import shake_256
from typing import Any

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.sums.ckks.parameters import load_seal, seal_parameters
from fedlap_app.sums.ckks.seal_files import saved_bytes
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT

PUBLIC_KEY_BYTES = 470_000
"""Room for a public key: SEAL compresses it, to a length that varies by some hundred bytes."""

_KEYS = 64
_LENGTH = struct.Struct("<Q")
_FLAGS = b"\x10\x07\x19" + struct.pack("<d", TENSEAL_DEFAULT.scale)


def load_tenseal() -> Any:  # noqa: ANN401 - a module without types
    """The package tenseal; loaded when it is needed, because it is large."""
    try:
        import tenseal
    except ImportError:
        raise ConfigError(
            f"profile = '{TENSEAL_DEFAULT.name}' needs the package tenseal: install fedlap[run]"
        ) from None
    return tenseal


def new_public_key(seed: bytes) -> bytes:
    """A public key for the secret key of a seed, filled up; a new one at every call."""
    key = _public_key(seed)
    return in_room(key, PUBLIC_KEY_BYTES)


@lru_cache(maxsize=1)
def keyless() -> Any:  # noqa: ANN401
    """Context of the server, who adds: no key at all."""
    return _context()


@lru_cache(maxsize=_KEYS)
def encrypting(public: bytes) -> Any:  # noqa: ANN401
    """Context of whoever encrypts under a public key."""
    if len(public) != PUBLIC_KEY_BYTES:
        raise ProtocolError(
            f"A public key has {len(public)} bytes where {PUBLIC_KEY_BYTES} were expected; "
            "all members must use one profile."
        )
    return _context(public=from_room(public))


@lru_cache(maxsize=_KEYS)
def encrypting_for_all(seed: bytes) -> Any:  # noqa: ANN401
    """Context of a member that encrypts for all, by a public key of its own for their key."""
    return _context(public=_public_key(seed))


@lru_cache(maxsize=_KEYS)
def decrypting(seed: bytes) -> Any:  # noqa: ANN401
    """Context of whoever holds the secret key of a seed."""
    return _context(secret=saved_bytes(_secret_key(seed)))


def in_room(data: bytes, room: int) -> bytes:
    """Bytes behind their length, filled up with zeros."""
    if _LENGTH.size + len(data) > room:
        raise ProtocolError(
            f"An object of SEAL takes {len(data)} bytes where {room - _LENGTH.size} were "
            "expected at most; run it again."
        )
    return (_LENGTH.pack(len(data)) + data).ljust(room, b"\0")


def from_room(data: bytes) -> bytes:
    """What `in_room` filled up; anything else in the room is refused."""
    size = _LENGTH.unpack_from(data)[0] if len(data) > _LENGTH.size else 0
    end = _LENGTH.size + size
    if not 0 < size <= len(data) - _LENGTH.size or data[end:].strip(b"\0"):
        raise ProtocolError("What came is not filled up with zeros; it was altered.")
    return data[_LENGTH.size : end]


def varint(number: int) -> bytes:
    """A number as protocol buffers write it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number: int, content: bytes) -> bytes:
    """A field of bytes of a protocol buffer."""
    return bytes((number << 3 | 2,)) + varint(len(content)) + content


def _context(public: bytes = b"", secret: bytes = b"") -> Any:  # noqa: ANN401
    chosen = TENSEAL_DEFAULT
    parts = [
        field(1, saved_bytes(seal_parameters(chosen.degree, chosen.primes))),
        field(2, (field(1, public) if public else b"") + _FLAGS),
    ]
    if secret:
        parts.append(field(3, field(1, secret)))
    try:
        return load_tenseal().context_from(b"".join(parts))
    except (RuntimeError, ValueError):
        raise ProtocolError("TenSEAL refuses a key: it was altered.") from None


def _secret_key(seed: bytes) -> Any:  # noqa: ANN401
    """The secret key of a seed: the only object that is ever made with a seeded generator."""
    seal, chosen = load_seal(), TENSEAL_DEFAULT
    drawn = struct.unpack("<8Q", shake_256(b"fedlap tenseal secret" + seed).digest(64))
    parameters = seal_parameters(chosen.degree, chosen.primes)
    parameters.set_random_generator(seal.Shake256PRNGFactory(list(drawn)))
    seeded = seal.SEALContext(parameters, False, seal.SEC_LEVEL_TYPE.TC128)
    return seal.KeyGenerator(seeded).secret_key()


def _public_key(seed: bytes) -> bytes:
    seal = load_seal()
    key = seal.PublicKey()
    seal.KeyGenerator(TENSEAL_DEFAULT.context, _secret_key(seed)).create_public_key(key)
    return saved_bytes(key)
