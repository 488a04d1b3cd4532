"""Who an organisation is: a long-term X25519 and Ed25519 key pair and its fingerprint."""

import base64
import os
import stat
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.store.files import write_private
from fedlap_app.sums.kdf import derive, digest

_BEGIN = "-----BEGIN FEDLAP IDENTITY-----"
_END = "-----END FEDLAP IDENTITY-----"
_KEY_BYTES = 32


def fingerprint(signing: bytes, agreement: bytes) -> str:
    """Printable 160-bit fingerprint of the two public keys: eight groups of four characters."""
    text = base64.b32encode(digest("fingerprint", signing, agreement)[:20]).decode().lower()
    return "-".join(text[i : i + 4] for i in range(0, len(text), 4))


class AgreementKey:
    """An X25519 private key, read once for many agreements.

    Parameters
    ----------
    raw : bytes
        32 bytes.
    """

    def __init__(self, raw: bytes) -> None:
        self._key = X25519PrivateKey.from_private_bytes(raw)

    @property
    def public(self) -> bytes:
        """Raw public key."""
        return self._key.public_key().public_bytes_raw()

    def agree(self, public: bytes) -> bytes:
        """Secret shared with the owner of a raw public key; a degenerate one is refused."""
        try:
            return self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError as error:
            raise ProtocolError(
                f"The public key {public.hex()} is no usable X25519 key; "
                "ask its owner for a new card."
            ) from error


def is_identity_file(path: Path) -> bool:
    """Whether the file begins like the ones that `Identity.save` writes."""
    try:
        with path.open("rb") as file:
            return file.read(len(_BEGIN)) == _BEGIN.encode()
    except OSError:
        return False


def is_signed(signing: bytes, signature: bytes, message: bytes) -> bool:
    """Tell whether the Ed25519 signature of the message is good."""
    try:
        Ed25519PublicKey.from_public_bytes(signing).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True)
class Identity:
    """Private keys of one organisation (raw, 32 bytes each); never leaves it."""

    signing_key: bytes = field(repr=False)
    agreement_key: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> "Identity":
        """Draw a new identity from the system's randomness."""
        return cls(os.urandom(_KEY_BYTES), os.urandom(_KEY_BYTES))

    @classmethod
    def from_seed(cls, seed: bytes, name: str) -> "Identity":
        """Derive an identity from a seed, for simulation only: who has the seed has the keys."""
        return cls(
            derive(seed, "simulated signing key", name),
            derive(seed, "simulated agreement key", name),
        )

    @cached_property
    def signing_public(self) -> bytes:
        """Raw Ed25519 public key."""
        key = Ed25519PrivateKey.from_private_bytes(self.signing_key)
        return key.public_key().public_bytes_raw()

    @cached_property
    def agreement_public(self) -> bytes:
        """Raw X25519 public key."""
        return AgreementKey(self.agreement_key).public

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint that other organisations pin."""
        return fingerprint(self.signing_public, self.agreement_public)

    def sign(self, message: bytes) -> bytes:
        """Ed25519 signature of a message."""
        return Ed25519PrivateKey.from_private_bytes(self.signing_key).sign(message)

    def save(self, path: Path) -> None:
        """Write a new file that only its owner can read; an existing file is never replaced."""
        body = base64.b64encode(self.signing_key + self.agreement_key).decode()
        if path.exists():
            raise ConfigError(
                f"{path} exists already; an identity is never overwritten, choose another file."
            )
        write_private(path, f"{_BEGIN}\n{body}\n{_END}\n".encode())

    @classmethod
    def load(cls, path: Path) -> "Identity":
        """Read an identity; a file that others may read is refused."""
        try:
            mode = stat.S_IMODE(path.stat().st_mode)
            lines = path.read_text().split("\n") if not mode & 0o077 else []
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"The identity file {path} cannot be read; give the file that `fedlap keys` wrote."
            ) from error
        if mode & 0o077:
            raise ConfigError(
                f"The identity file {path} has mode {mode:04o}, but only its owner may read it: "
                f"run `chmod 600 {path}`, and make new keys if others had access."
            )
        try:
            if (lines[0], lines[2]) != (_BEGIN, _END):
                raise ValueError
            raw = base64.b64decode(lines[1], validate=True)
        except (ValueError, IndexError):
            raw = b""
        if len(raw) != 2 * _KEY_BYTES:
            raise ConfigError(
                f"{path} is not an identity file; give the file that `fedlap keys` wrote."
            )
        return cls(raw[:_KEY_BYTES], raw[_KEY_BYTES:])
