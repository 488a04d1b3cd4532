"""Which certificates a coordinator's folder has and needs; the authority's key only signs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from fedlap_app.deploy.certificates import (
    Pair,
    is_issued_by,
    make_authority,
    make_server,
    names_of,
    read_certificate,
    read_pair,
)
from fedlap_app.errors import ConfigError


@dataclass(frozen=True)
class Files:
    """Where a coordinator keeps its certificates and keys."""

    out: Path

    @property
    def authority(self) -> tuple[Path, Path]:
        """Certificate and key of the authority; the key may be kept elsewhere."""
        return self.out / "ca" / "ca.crt", self.out / "ca" / "ca.key"

    @property
    def server(self) -> tuple[Path, Path]:
        """Certificate and key of the SuperLink."""
        return self.out / "superlink" / "server.crt", self.out / "superlink" / "server.key"

    @property
    def known_authority(self) -> Path | None:
        """The authority's certificate, or the SuperLink's copy of it; None in a new folder."""
        places = (self.authority[0], self.out / "superlink" / "ca.crt")
        return next((path for path in places if path.exists()), None)


@dataclass(frozen=True)
class Certificates:
    """Certificates of a federation, and the pairs among them that are not on the disk yet."""

    authority: x509.Certificate
    server: x509.Certificate
    new_authority: Pair | None = None
    new_server: Pair | None = None

    def save(self, out: Path) -> None:
        """Write what is new."""
        files = Files(out)
        for pair, paths, mode in (
            (self.new_authority, files.authority, 0o700),
            (self.new_server, files.server, 0o755),
        ):
            if pair is not None:
                paths[0].parent.mkdir(parents=True, exist_ok=True, mode=mode)
                pair.save(*paths)


def find_certificates(
    out: Path, federation: str, names: Sequence[str], days: float, *, renew: bool
) -> Certificates:
    """The certificates of a folder; new ones where they are missing, too old or to be renewed.

    Parameters
    ----------
    out : the coordinator's folder, in which nothing is written.
    federation : its name.
    names : that the SuperLink's certificate must cover.
    days : that a new certificate of the SuperLink lasts.
    renew : make a new certificate of the SuperLink although the old one is good.
    """
    files = Files(out)
    if files.known_authority is None and not files.authority[1].exists():
        _refuse_half_a_federation(files)
        pair = make_authority(federation)
        server = make_server(pair, federation, names, days)
        return Certificates(pair.certificate, server.certificate, pair, server)
    why = "--renew asks for a new certificate" if renew else _why_new(files, names)
    if not why and files.known_authority is not None:
        return Certificates(read_certificate(files.known_authority), _server_of(files).certificate)
    return _signed(files, federation, names, days, why)


def _refuse_half_a_federation(files: Files) -> None:
    """A folder with a federation keeps its authority: everyone has its certificate."""
    left = [path for path in (files.out / "federation.toml", *files.server) if path.exists()]
    if left:
        raise ConfigError(
            f"{left[0]} belongs to a federation but its authority is gone: bring ca/ca.crt and "
            "ca/ca.key back, or name a new --out"
        )


def _server_of(files: Files) -> Pair:
    return read_pair(*files.server)


def _why_new(files: Files, names: Sequence[str]) -> str:
    """What makes a new certificate of the SuperLink necessary; empty while the old one will do."""
    missing = next((path for path in files.server if not path.exists()), None)
    if missing:
        return f"there is no {missing.name}"
    if files.known_authority is None:
        return "there is no ca.crt"
    authority = read_certificate(files.known_authority)
    server = _server_of(files).certificate
    now = datetime.now(UTC)
    uncovered = [name for name in names if name not in names_of(server)]
    if uncovered:
        return f"the certificate does not cover {', '.join(uncovered)}"
    if min(server.not_valid_after_utc, authority.not_valid_after_utc) <= now:
        return "a certificate has expired"
    if not is_issued_by(server, authority):
        return "the authority did not issue server.crt"
    return ""


def _signed(
    files: Files, federation: str, names: Sequence[str], days: float, why: str
) -> Certificates:
    """A new certificate of the SuperLink; an authority that would end first is prolonged."""
    certificate, key = files.authority
    if not key.exists():
        raise ConfigError(
            f"{why} and only the authority's key can sign one: bring ca/ca.key back to {key}"
        )
    pair = read_pair(files.known_authority or certificate, key)
    left = pair.certificate.not_valid_after_utc - datetime.now(UTC)
    prolonged = make_authority(federation, pair.key) if left <= timedelta(days=days) else None
    pair = prolonged or pair
    server = make_server(pair, federation, names, days)
    # The certificate's own place gets it back when only the SuperLink's copy was there.
    new = prolonged or (None if certificate.exists() else pair)
    return Certificates(pair.certificate, server.certificate, new, server)
