"""The federation's own certification authority and the SuperLink's certificate."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fedlap_app.errors import ConfigError
from fedlap_app.privacy.addresses import is_address
from fedlap_app.store.files import write_private

CA_DAYS = 3650
SERVER_DAYS = 397  # what browsers and most policies accept at most
_SKEW = timedelta(hours=1)  # a clock that is behind must not find the certificate too young
_NO_USAGE = dict.fromkeys(
    (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    ),
    False,
)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def save(self, certificate: Path, key: Path) -> None:
        """Write both in PEM; the key for its owner only."""
        text = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        write_private(key, text)
        certificate.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))


def make_authority(federation: str, key: ec.EllipticCurvePrivateKey | None = None) -> Pair:
    """A certification authority for one federation.

    Parameters
    ----------
    federation : str
        Name of the federation.
    key : private key, optional
        Of an authority whose certificate runs out (default: a new key).
    """
    key = key or ec.generate_private_key(ec.SECP384R1())
    subject = _subject(f"FedLap {federation}", federation)
    public = key.public_key()
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    built = (
        _builder(subject, subject, public, timedelta(days=CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(**{**_NO_USAGE, "key_cert_sign": True, "crl_sign": True}), critical=True
        )
        .add_extension(identifier, critical=False)
        .sign(key, hashes.SHA384())
    )
    return Pair(built, key)


def make_server(authority: Pair, federation: str, names: Sequence[str], days: float) -> Pair:
    """A certificate for the SuperLink that covers every name and address."""
    key = ec.generate_private_key(ec.SECP384R1())
    public = key.public_key()
    lasting = min(
        timedelta(days=days), authority.certificate.not_valid_after_utc - datetime.now(UTC)
    )
    issuer = x509.SubjectKeyIdentifier.from_public_key(authority.key.public_key())
    signer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer)
    built = (
        _builder(_subject(names[0], federation), authority.certificate.subject, public, lasting)
        .add_extension(x509.SubjectAlternativeName([_general(n) for n in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**{**_NO_USAGE, "digital_signature": True}), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(signer, critical=False)
        .sign(authority.key, hashes.SHA384())
    )
    return Pair(built, key)


def _subject(common: str, federation: str) -> x509.Name:
    return x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, _shortened(common)),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, _shortened(federation)),
        ]
    )


def _shortened(value: str) -> str:
    """At most the 64 bytes that an attribute takes, without half a letter at the end."""
    return value.encode()[:64].decode(errors="ignore")


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lasting: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, now + lasting) - _SKEW)
        .not_valid_after(now + lasting)
    )


def _general(name: str) -> x509.GeneralName:
    if is_address(name):
        return x509.IPAddress(ipaddress.ip_address(name))
    return x509.DNSName(name)


def read_certificate(path: Path) -> x509.Certificate:
    """A certificate from a PEM file."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(
            f"there is no {path}: copy the file again that `fedlap keys issue` wrote"
        ) from None
    except ValueError:
        raise ConfigError(
            f"{path} is no certificate in PEM: copy the file again that `fedlap keys issue` wrote"
        ) from None


def read_pair(certificate: Path, key: Path) -> Pair:
    """A certificate and its key from PEM files."""
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except FileNotFoundError:
        raise ConfigError(f"there is no {key}: restore it from a backup") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{key} is no private key of `fedlap keys issue`: restore it")
    found = read_certificate(certificate)
    if found.public_key() != private.public_key():
        raise ConfigError(f"{key} does not belong to {certificate}: restore the pair from a backup")
    return Pair(found, private)


def names_of(certificate: x509.Certificate) -> tuple[str, ...]:
    """Names and addresses that a certificate covers."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = [str(each) for each in found.get_values_for_type(x509.IPAddress)]
    return (*found.get_values_for_type(x509.DNSName), *addresses)


def certificate_fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` shows it."""
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def is_issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether the authority signed the certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
