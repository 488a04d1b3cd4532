"""Whether the folder of a coordinator is whole: one finding a check."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from cryptography import x509

from fedlap_app.deploy.certificates import (
    certificate_fingerprint,
    is_issued_by,
    names_of,
    read_certificate,
    read_pair,
)
from fedlap_app.deploy.check_files import (
    check_authority,
    check_present,
    check_private,
    check_shut,
    check_versions,
)
from fedlap_app.deploy.findings import Finding, attempt, bad, expiry, good, wrong
from fedlap_app.deploy.signing import Files
from fedlap_app.errors import ConfigError
from fedlap_app.privacy.addresses import certificate_names
from fedlap_app.privacy.federation import FILE, Federation, read_federation_file

_SCRIPTS = (
    *("start.sh", "flwr.sh", "register.sh", "unregister.sh"),
    *("coordinator.env", "nginx.conf"),
)


def check_coordinator(folder: Path) -> list[Finding]:
    """Authority, certificate, names, permissions, and whether all copies agree."""
    superlink, files = folder / "superlink", Files(folder)
    again = f"run `fedlap keys issue --out {folder}` again"
    found = [_signing_key(files)]
    for path in (files.server[1], superlink / "superexec-secret"):
        found.append(check_private("coordinator", path))
    found += [check_shut(each) for each in (folder / "ca", superlink) if each.is_dir()]
    scripts = [superlink / name for name in _SCRIPTS]
    found.append(check_present("start commands", scripts, again))
    try:
        federation = read_federation_file(folder / FILE)
    except ConfigError as error:
        return [*found, bad("coordinator", str(error))]
    authority = files.known_authority or files.authority[0]
    found.append(attempt("authority", lambda: check_authority("authority", authority, federation)))
    copy = superlink / "ca.crt"
    if authority != copy:
        found.append(attempt("ca.crt", lambda: _same(copy, authority, again)))
    found.append(attempt(FILE, lambda: _same(superlink / FILE, folder / FILE, again)))
    found += _certificates(files, authority, federation)
    found.append(check_versions(federation))
    for name in federation.pins:
        found.append(attempt(name, partial(_copy, folder, federation, name, again)))
    return found


def _signing_key(files: Files) -> Finding:
    """The authority's key is needed to sign only, so it may be in a safe."""
    key = files.authority[1]
    if key.exists():
        return check_private("coordinator", key)
    says = "kept elsewhere, as it should be: bring it back for a new certificate"
    return good(f"coordinator's {key.name}", says)


def _same(path: Path, original: Path, remedy: str) -> Finding:
    if not path.is_file() or path.read_bytes() != original.read_bytes():
        return bad(path.name, f"{path} is not the same as {original}: {remedy}")
    return good(path.name, f"{path} is up to date")


def _certificates(files: Files, path: Path, federation: Federation) -> Iterator[Finding]:
    remedy = (
        f"run `fedlap keys issue --renew --out {files.out}` and send ca.crt and {FILE} if they "
        "changed"
    )
    try:
        authority = read_certificate(path)
        if files.authority[1].exists():
            read_pair(path, files.authority[1])
        server = read_pair(*files.server).certificate
    except (ConfigError, OSError) as error:
        yield wrong("certificates", error)
        return
    yield expiry("authority", authority.not_valid_after_utc, remedy)
    yield expiry("server certificate", server.not_valid_after_utc, remedy)
    if is_issued_by(server, authority):
        yield good("server certificate", "issued by the authority")
    else:
        yield bad("server certificate", f"not issued by the authority: {remedy}")
    yield _names(server, federation, remedy)


def _names(server: x509.Certificate, federation: Federation, remedy: str) -> Finding:
    wanted = certificate_names(federation.servers, federation.listen[0])
    missing = sorted(set(wanted) - set(names_of(server)))
    if missing:
        return bad("names", f"the certificate does not cover {', '.join(missing)}: {remedy}")
    return good("names", f"the certificate covers {', '.join(names_of(server))}")


def _copy(folder: Path, federation: Federation, name: str, remedy: str) -> Finding:
    """Whether what an organisation will get is what the federation file says now."""
    given = folder / "organisations" / name
    key = folder / "superlink" / "keys" / f"{name}.pub"
    line = federation.member(name).supernode_key.encode()
    if not key.is_file() or key.read_bytes().strip() != line:
        return bad(name, f"{key} is out of date: {remedy}")
    if not (given / FILE).is_file() or (given / FILE).read_bytes() != (folder / FILE).read_bytes():
        return bad(name, f"{given} is out of date: {remedy}")
    if certificate_fingerprint(read_certificate(given / "ca.crt")) != federation.authority:
        return bad(name, f"{given / 'ca.crt'} is of another authority: {remedy}")
    return good(name, f"fingerprint {federation.pins[name]}")
