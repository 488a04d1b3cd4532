"""`fedlap keys check`: expiry, names, permissions and fingerprints of a folder, one line each."""

import shlex
from dataclasses import replace
from pathlib import Path

import flwr

import fedlap_app
from fedlap_app.errors import ConfigError
from fedlap_app.private_files import is_private
from fedlap_app.provision.certificates import (
    certificate_fingerprint,
    is_issued_by,
    names_of,
    read_certificate,
    read_pair,
)
from fedlap_app.provision.federation import FILE, Federation, read_federation_file
from fedlap_app.provision.findings import Finding, attempt, bad, expiry, good, soon
from fedlap_app.provision.names import certificate_names
from fedlap_app.provision.organisation import ENVIRONMENT, KEY, SECRET
from fedlap_app.provision.request import FILE as REQUEST
from fedlap_app.provision.request import read_request
from fedlap_app.provision.supernode_key import key_fingerprint, private_to_public
from fedlap_app.secure.identity import Identity

_RENEW = "run `fedlap keys issue --renew` and send ca.crt and federation.toml if they changed"


def check_folder(folder: Path) -> list[Finding]:
    """Check the folder of a coordinator, of an organisation, or of a demonstration."""
    if (folder / "ca").is_dir():
        return check_coordinator(folder)
    if (folder / "coordinator").is_dir() and (folder / "organisations").is_dir():
        found = check_coordinator(folder / "coordinator")
        for each in sorted((folder / "organisations").iterdir()):
            found += [
                replace(finding, what=f"{each.name}, {finding.what}")
                for finding in check_organisation(each)
            ]
        return found
    if (folder / "keys").is_dir() or (folder / FILE).is_file():
        return check_organisation(folder)
    raise ConfigError(
        f"{folder} holds neither an organisation's keys nor a coordinator's authority: name the "
        "folder that `fedlap keys` wrote"
    )


def check_coordinator(folder: Path) -> list[Finding]:
    """Authority, certificate, names, permissions, and whether all copies agree."""
    superlink = folder / "superlink"
    private = [folder / "ca" / "ca.key", superlink / "server.key", superlink / "superexec-secret"]
    found = [_private("coordinator", path) for path in private]
    try:
        federation = read_federation_file(folder / FILE)
        authority = read_pair(folder / "ca" / "ca.crt", private[0]).certificate
        server = read_pair(superlink / "server.crt", private[1]).certificate
    except (ConfigError, OSError) as error:
        return [*found, bad("coordinator", str(error))]
    found.append(expiry("authority", authority.not_valid_after_utc, _RENEW))
    found.append(expiry("server certificate", server.not_valid_after_utc, _RENEW))
    found.append(_authority("authority", certificate_fingerprint(authority), federation))
    if is_issued_by(server, authority):
        found.append(good("server certificate", "issued by the authority"))
    else:
        found.append(bad("server certificate", f"not issued by the authority: {_RENEW}"))
    missing = set(certificate_names(federation.servers, federation.listen[0]))
    missing -= set(names_of(server))
    if missing:
        listed = ", ".join(sorted(missing))
        found.append(bad("names", f"the certificate does not cover {listed}: {_RENEW}"))
    else:
        found.append(good("names", f"the certificate covers {', '.join(names_of(server))}"))
    found.append(_versions(federation))
    return found + [_copy(folder, federation, name) for name in federation.pins]


def check_organisation(folder: Path) -> list[Finding]:
    """Keys, identity, certificate and federation file of one organisation."""
    found = [_private("organisation", folder / file) for file in (KEY, SECRET)]
    found.append(attempt("keys", lambda: _shut(folder / "keys")))
    try:
        request = read_request(folder / REQUEST)
        store = Path(_environment(folder / ENVIRONMENT)["FEDLAP_ORG_STORE"])
    except (ConfigError, OSError) as error:
        return [*found, bad("request", str(error))]
    name = request.name
    found.append(attempt(name, lambda: _supernode(folder, request.supernode_key)))
    found.append(attempt(name, lambda: _identity(store, request.fingerprint)))
    if not (folder / FILE).is_file():
        says = "the coordinator's files are not here yet: send request.json and wait for them"
        return [*found, soon("federation", says)]
    try:
        federation = read_federation_file(folder / FILE)
        authority = read_certificate(folder / "ca.crt")
    except (ConfigError, OSError) as error:
        return [*found, bad("federation", str(error))]
    remedy = "ask the coordinator to run `fedlap keys issue --renew`"
    found.append(expiry("ca.crt", authority.not_valid_after_utc, remedy))
    found.append(expiry("SuperLink", federation.certificate_expires, remedy))
    found.append(_authority("ca.crt", certificate_fingerprint(authority), federation))
    pinned = (request.fingerprint, request.supernode_key)
    found.append(attempt(name, lambda: _pinned(federation, name, pinned)))
    found.append(_versions(federation))
    return found


def _private(whose: str, path: Path) -> Finding:
    what = f"{whose}'s {path.name}"
    if not path.is_file():
        return bad(what, f"there is no {path}: restore it from a backup or make new keys")
    if not is_private(path):
        mode = path.stat().st_mode & 0o777
        return bad(
            what, f"mode {mode:04o} lets others read it: `chmod 600 {path}` and make new keys"
        )
    return good(what, "only its owner can read it")


def _shut(folder: Path) -> Finding:
    mode = folder.stat().st_mode & 0o777
    if mode & 0o022:
        return bad("keys", f"others may write into {folder} (mode {mode:04o}): chmod 700")
    return good("keys", f"mode {mode:04o}")


def _authority(what: str, fingerprint: str, federation: Federation) -> Finding:
    if fingerprint != federation.authority:
        return bad(
            what,
            f"its SHA-256 is {fingerprint} but {FILE} says {federation.authority}: get both files "
            "again and ask the coordinator",
        )
    return good(what, f"SHA-256 {fingerprint}")


def _versions(federation: Federation) -> Finding:
    ours = f"FedLap {fedlap_app.__version__}, Flower {flwr.__version__}"
    theirs = f"FedLap {federation.version}, Flower {federation.flower}"
    if ours != theirs:
        return bad("versions", f"here {ours}, the federation {theirs}: install the same")
    return good("versions", ours)


def _copy(folder: Path, federation: Federation, name: str) -> Finding:
    """Whether what an organisation will get is what the federation file says now."""
    given = folder / "organisations" / name
    key = folder / "superlink" / "keys" / f"{name}.pub"
    same = (given / FILE).is_file() and (given / FILE).read_bytes() == (folder / FILE).read_bytes()
    registered = key.is_file() and key.read_text().strip() == federation.member(name).supernode_key
    if same and registered:
        return good(name, f"fingerprint {federation.pins[name]}")
    return bad(
        name, f"{given if registered else key} is out of date: run `fedlap keys issue` again"
    )


def _supernode(folder: Path, requested: str) -> Finding:
    if private_to_public(folder / KEY) != requested:
        return bad("SuperNode key", "it is not that of request.json: run `fedlap keys request`")
    return good("SuperNode key", key_fingerprint(requested))


def _identity(store: Path, requested: str) -> Finding:
    found = Identity.load(store / "offline" / "identity").fingerprint
    if found != requested:
        return bad(
            "identity",
            f"the store has {found} but request.json {requested}: restore the store, or run "
            "`fedlap keys request` and send the request again",
        )
    return good("identity", f"fingerprint {found}, only its owner can read it")


def _pinned(federation: Federation, name: str, ours: tuple[str, str]) -> Finding:
    member = federation.member(name)
    if (member.fingerprint, member.supernode_key) != ours:
        return bad(
            "federation",
            f"{FILE} has other keys for {name} than this folder: send request.json to the "
            "coordinator again",
        )
    others = len(federation.members) - 1
    return good("federation", f"{FILE} has the keys of {name} and pins {others} others")


def _environment(path: Path) -> dict[str, str]:
    """Values of a file of NAME='value' lines."""
    try:
        words = shlex.split(path.read_text(encoding="utf-8"), comments=True)
        values = dict(word.split("=", 1) for word in words)
        return {"FEDLAP_ORG_STORE": values["FEDLAP_ORG_STORE"], **values}
    except (ValueError, KeyError):
        raise ConfigError(
            f"{path} has no FEDLAP_ORG_STORE: run `fedlap keys request` again"
        ) from None
