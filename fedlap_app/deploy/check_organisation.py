"""Whether the folder of an organisation is whole: one finding a check."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from fedlap_app.deploy.certificates import is_issued_by, read_certificate, read_pair
from fedlap_app.deploy.check_files import (
    check_authority,
    check_private,
    check_shut,
    check_versions,
)
from fedlap_app.deploy.environment import read_environment
from fedlap_app.deploy.findings import Finding, attempt, bad, expiry, good, soon, wrong
from fedlap_app.deploy.folders import start_commands
from fedlap_app.deploy.organisation import ENVIRONMENT, KEY, RUNTIME, SECRET
from fedlap_app.deploy.request import FILE as REQUEST
from fedlap_app.deploy.request import Request, read_request
from fedlap_app.deploy.supernode_key import key_fingerprint, private_to_public
from fedlap_app.errors import ConfigError
from fedlap_app.privacy.federation import FILE, Federation, read_federation_file
from fedlap_app.store import names
from fedlap_app.sums.identity import Identity

_NEEDED = ("FEDLAP_BIN", "FEDLAP_ORG_DATA", "FEDLAP_ORG_STORE", "FEDLAP_NODE_PORT")


def check_organisation(folder: Path) -> list[Finding]:
    """Keys, identity, certificates and federation file of one organisation."""
    runtime = f"{RUNTIME}.key"
    found = [check_private("organisation", folder / file) for file in (KEY, SECRET, runtime)]
    found.append(check_shut(folder / "keys"))
    if (folder / runtime).is_file():
        found.append(attempt("runtime certificate", lambda: _runtime(folder)))
    values: Mapping[str, str] = {}
    try:
        values = read_environment(folder / ENVIRONMENT)
        found.append(_environment(folder / ENVIRONMENT, values))
    except (ConfigError, OSError) as error:
        found.append(wrong(ENVIRONMENT, error))
    try:
        request = read_request(folder / REQUEST)
    except (ConfigError, OSError) as error:
        return [*found, wrong("request", error)]
    if (folder / KEY).is_file():
        found.append(attempt(request.name, lambda: _supernode(folder, request.supernode_key)))
    if values.get("FEDLAP_ORG_STORE"):
        store = Path(values["FEDLAP_ORG_STORE"])
        found.append(attempt(request.name, lambda: _identity(store, request.fingerprint)))
    found.append(attempt("start commands", lambda: _start_commands(folder, request.name)))
    if not (folder / FILE).is_file():
        says = "the coordinator's files are not here yet: send request.json and wait for them"
        return [*found, soon("federation", says)]
    return [*found, *_federation(folder, request)]


def _runtime(folder: Path) -> Finding:
    """TLS between SuperNode and SuperExec on the own machine."""
    what = "runtime certificate"
    remedy = f"remove {folder / RUNTIME}.key and run `fedlap keys request` again for a new one"
    try:
        pair = read_pair(folder / f"{RUNTIME}.crt", folder / f"{RUNTIME}.key")
        issued = is_issued_by(pair.certificate, read_certificate(folder / f"{RUNTIME}-ca.crt"))
    except ConfigError as error:
        return bad(what, f"{str(error).split(': ')[0]}: {remedy}")
    if not issued:
        return bad(what, f"{RUNTIME}-ca.crt did not issue {RUNTIME}.crt: {remedy}")
    return expiry(what, pair.certificate.not_valid_after_utc, remedy)


def _environment(path: Path, values: Mapping[str, str]) -> Finding:
    if not path.is_file():
        return bad(ENVIRONMENT, f"there is no {path}: run `fedlap keys request` again")
    missing = [name for name in _NEEDED if not values.get(name)]
    if missing:
        says = f"{path} has no {', '.join(missing)}: run `fedlap keys request` again"
        return bad(ENVIRONMENT, says)
    if not Path(values["FEDLAP_ORG_DATA"]).is_dir():
        return bad(
            ENVIRONMENT,
            f"there is no folder {values['FEDLAP_ORG_DATA']}: correct FEDLAP_ORG_DATA in {path}",
        )
    return good(ENVIRONMENT, f"data {values['FEDLAP_ORG_DATA']}")


def _supernode(folder: Path, requested: str) -> Finding:
    if private_to_public(folder / KEY) != requested:
        return bad("SuperNode key", "it is not that of request.json: run `fedlap keys request`")
    return good("SuperNode key", key_fingerprint(requested))


def _identity(store: Path, requested: str) -> Finding:
    path = store / names.OFFLINE / names.IDENTITY
    if not path.exists():
        return bad(
            "identity",
            f"there is no {path}: restore the store, or correct FEDLAP_ORG_STORE in {ENVIRONMENT}",
        )
    found = Identity.load(path).fingerprint
    if found != requested:
        return bad(
            "identity",
            f"the store has {found} but request.json {requested}: restore the store, or run "
            "`fedlap keys request` and send the request again",
        )
    return good("identity", f"fingerprint {found}, only its owner can read it")


def _start_commands(folder: Path, name: str) -> Finding:
    """Whether they are those of the installed package, so that no delivered code runs."""
    expected = start_commands(name)
    for file, content in expected.items():
        path = folder / file
        if not path.is_file():
            return bad("start commands", f"there is no {path}: run `fedlap keys request` again")
        if path.read_bytes() != content.encode():
            return bad(
                "start commands",
                f"{path} is not what the installed package writes, so that it may run the code "
                "that comes with a run: run `fedlap keys request` again, and keep changes of your "
                f"own in {ENVIRONMENT} or compose.override.yml",
            )
    return good("start commands", f"{', '.join(expected)} are those of the installed package")


def _federation(folder: Path, request: Request) -> Iterator[Finding]:
    """What came from the coordinator."""
    try:
        federation = read_federation_file(folder / FILE)
        authority = read_certificate(folder / "ca.crt")
    except (ConfigError, OSError) as error:
        yield wrong("federation", error)
        return
    remedy = "ask the coordinator to run `fedlap keys issue --renew`"
    yield expiry("ca.crt", authority.not_valid_after_utc, remedy)
    yield expiry("SuperLink", federation.certificate_expires, remedy)
    yield check_authority("ca.crt", folder / "ca.crt", federation)
    yield attempt(request.name, lambda: _pinned(federation, request))
    yield check_versions(federation)


def _pinned(federation: Federation, request: Request) -> Finding:
    name, member = request.name, federation.member(request.name)
    ours = (request.fingerprint, request.supernode_key)
    if (member.fingerprint, member.supernode_key) != ours:
        return bad(
            "federation",
            f"{FILE} has other keys for {name} than this folder: send request.json to the "
            "coordinator again",
        )
    others = len(federation.members) - 1
    return good("federation", f"{FILE} has the keys of {name} and pins {others} others")
