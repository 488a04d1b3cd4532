"""The key by which a SuperNode shows the SuperLink who it is: ECDSA P-384 in OpenSSH files."""

import base64
import hashlib
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fedlap_app.errors import ConfigError
from fedlap_app.store.files import write_private


def make_supernode_key(private: Path, public: Path, comment: str) -> None:
    """Draw a key pair and write both files; the private one for its owner only."""
    key = ec.generate_private_key(ec.SECP384R1())
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    write_private(private, text)
    public.write_text(f"{public_line(key.public_key())} {comment}\n", encoding="utf-8")


def public_line(key: ec.EllipticCurvePublicKey) -> str:
    """A public key as `flwr supernode register` reads it, without a comment."""
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    return key.public_bytes(encoding, form).decode()


def private_to_public(private: Path) -> str:
    """The public line of a private key file."""
    try:
        key = serialization.load_ssh_private_key(private.read_bytes(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(
            f"{private} is no SuperNode key: give the file that `fedlap keys request` wrote, or "
            "remove it and make a new request"
        )
    return public_line(key.public_key())


def check_public_line(line: str, whose: str) -> str:
    """The public key without its comment; anything but a P-384 key is refused."""
    try:
        key = serialization.load_ssh_public_key(line.encode())
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP384R1):
        raise ConfigError(
            f"the SuperNode key of {whose} is no ECDSA P-384 key in OpenSSH's form: ask for a new "
            "request"
        )
    return public_line(key)


def key_fingerprint(line: str) -> str:
    """Fingerprint of a public line, as `ssh-keygen -l` shows it."""
    blob = base64.b64decode(line.split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
