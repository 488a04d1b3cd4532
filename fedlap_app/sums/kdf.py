"""Keys from keys: one derivation and one unambiguous encoding for everything that is hashed."""

import hashlib
import hmac
from collections.abc import Iterator

from fedlap_app.errors import ProtocolError

Part = bytes | str | int
_LENGTH_BYTES = 4
_MOST_PARTS = 1 << 16
_NO_SALT = bytes(32)


def encode(*parts: Part) -> bytes:
    """Join parts so that no two different lists give the same bytes: each with its length first."""
    pieces: list[bytes] = []
    for part in parts:
        if isinstance(part, str):
            part = part.encode()
        elif isinstance(part, int):
            part = part.to_bytes(8, "little", signed=True)
        pieces += len(part).to_bytes(_LENGTH_BYTES, "little"), part
    return b"".join(pieces)


def decode(data: bytes) -> Iterator[bytes]:
    """Give the parts of `encode` back, as bytes.

    Raises
    ------
    ProtocolError
        When the bytes end inside a part, or hold more of them than there ever are.
    """
    at = count = 0
    while at < len(data):
        count += 1
        if count > _MOST_PARTS:
            raise ProtocolError(
                f"A message of {len(data)} bytes has more than {_MOST_PARTS} parts; it was altered."
            )
        size = int.from_bytes(data[at : at + _LENGTH_BYTES], "little")
        end = at + _LENGTH_BYTES + size
        if at + _LENGTH_BYTES > len(data) or end > len(data):
            raise ProtocolError(
                f"A message of {len(data)} bytes ends inside a part; it was cut or altered."
            )
        yield data[at + _LENGTH_BYTES : end]
        at = end


def digest(*parts: Part) -> bytes:
    """SHA-256 of the encoded parts."""
    return hashlib.sha256(encode(*parts)).digest()


def derive(secret: bytes, purpose: str, *context: Part, length: int = 32) -> bytes:
    """Derive a key for one purpose by HKDF-SHA256.

    Parameters
    ----------
    secret : bytes
        Key material of at least 16 bytes.
    purpose : str
        What the key is for; keys for different purposes are independent.
    *context : bytes, str or int
        Everything else that the key depends on.
    length : int
        Bytes wanted (default: 32).
    """
    return hkdf(secret, _NO_SALT, encode("fedlap/1", purpose, *context), length)


def hkdf(secret: bytes, salt: bytes, info: bytes, length: int = 32) -> bytes:
    """HKDF-SHA256 (RFC 5869)."""
    extracted = hmac.digest(salt, secret, "sha256")
    key = block = b""
    while len(key) < length:
        block = hmac.digest(extracted, block + info + bytes([len(key) // 32 + 1]), "sha256")
        key += block
    return key[:length]
