"""Certificates and keys of a test federation: a CA, a server certificate, a key an organisation."""

import ipaddress
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP384R1())
        self._name = _name("test authority")
        builder = _builder(self._name, self._name, self._key.public_key(), days=(-1, 30))
        builder = builder.add_extension(x509.BasicConstraints(True, None), critical=True)
        certificate = builder.sign(self._key, hashes.SHA256())
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, name: str, hosts: Sequence[str], days: tuple[float, float] = (-1, 30)
    ) -> tuple[Path, Path]:
        """Certificate and key for hosts, valid from and until some days from now."""
        key = ec.generate_private_key(ec.SECP384R1())
        builder = _builder(_name(name), self._name, key.public_key(), days=days)
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _private(paths[1], _pem(key))
        return paths


def node_key(path: Path) -> Path:
    """A SuperNode's key pair; gives the path of the public key."""
    key = ec.generate_private_key(ec.SECP384R1())
    _private(
        path,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        ),
    )
    public = path.with_suffix(".pub")
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
    )
    return public


def shared_secret(path: Path) -> Path:
    """A secret between a SuperLink or SuperNode and its SuperExec."""
    _private(path, secrets.token_bytes(32))
    return path


def _private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    days: tuple[float, float],
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
    )
