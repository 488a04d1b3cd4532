"""A dry run before hours are spent: whether this machine can take part in a federation.

Nothing is sent but one question for the SuperLink's health, and nothing is written.
"""

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import flwr

from fedlap_app.deploy.certificates import (
    certificate_fingerprint,
    names_of,
    read_certificate,
)
from fedlap_app.deploy.check_organisation import check_organisation
from fedlap_app.deploy.environment import read_environment
from fedlap_app.deploy.findings import GOOD, Finding, attempt, bad, expiry, good, soon
from fedlap_app.deploy.organisation import ENVIRONMENT
from fedlap_app.deploy.stock import find_stock_processes
from fedlap_app.deploy.superlink_probe import Answer, probe
from fedlap_app.deploy.training_findings import policy_findings, training_findings
from fedlap_app.errors import ConfigError, FedLapError, RunError
from fedlap_app.flower.package import installed_code
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.registry import method_class
from fedlap_app.privacy.federation import Federation, read_federation_file
from fedlap_app.privacy.pins import merge_pins, org_pins
from fedlap_app.privacy.policy import read_policy
from fedlap_app.settings import Settings
from fedlap_app.store import names, places
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.room import disk_of
from fedlap_app.studies.planning.shape import equal_parts
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.sums.choice import backend_class
from fedlap_app.sums.identity import Identity
from fedlap_app.version import VERSION

CLOCK_SECONDS = 5.0
_MB = 2**20
# Flower's bundle, logs, message parts, the model and predictions, beside the phase's own files.
_SPARE_MB = 500.0
_PACKAGES = ("torch", "torch_geometric", "scipy", "cryptography")


def examine(
    file: Path,
    settings: Callable[[], Settings],
    data: Path | None = None,
    store: Path | None = None,
) -> list[Finding]:
    """All checks, the coordinator's or, with `data`, an organisation's.

    Parameters
    ----------
    file : federation file; `ca.crt` is beside it, or in `superlink` or `ca` there.
    settings : gives the settings of the run, or raises what is wrong with them.
    data : the organisation folder.
    store : the client's store (default: `store` in the organisation folder).
    """
    try:
        federation = read_federation_file(file)
    except FedLapError as error:
        return [bad("federation", str(error))]
    members = ", ".join(federation.pins)
    found = [good("federation", f"{federation.name}, {len(federation.members)} members: {members}")]
    found += _versions(federation)
    found += _superlink(federation, file.parent)
    try:
        chosen: Settings | None = settings()
    except FedLapError as error:
        chosen = None
        found.append(bad("settings", str(error)))
    if chosen is not None:
        found += _settings(chosen, federation)
    if data is None:
        found.append(_disk(file.parent, chosen, federation, None))
        return found
    store = store or places.own_store(data)
    try:
        subgraph = read_folder(data, directed=chosen.directed if chosen else False)
        policy = read_policy(data)
    except FedLapError as error:
        return [*found, bad("data", str(error))]
    found += _data(subgraph, federation)
    if chosen is not None:
        found += policy_findings(chosen, federation, policy)
    found.append(attempt("identity", lambda: _identity(data, store, subgraph.name, federation)))
    found += _start(file.parent, data)
    found.append(_disk(store, chosen, federation, subgraph))
    return found


def _start(folder: Path, data: Path) -> list[Finding]:
    """What `fedlap keys check` complains about, and processes that would run delivered code."""
    port = None
    if (folder / "keys").is_dir():
        found = [finding for finding in check_organisation(folder) if finding.state != GOOD]
        found = found or [good("keys", f"`fedlap keys check {folder}` finds nothing")]
        with suppress(ConfigError, OSError):
            port = read_environment(folder / ENVIRONMENT).get("FEDLAP_NODE_PORT")
    else:
        says = (
            f"no start commands of `fedlap keys request` are in {folder}: see to it that the "
            "SuperExec is `python -I -m client_app.superexec`, for Flower's own runs the code that "
            "comes with a run"
        )
        found = [soon("SuperExec", says)]
    return [*found, *find_stock_processes(data, port)]


def _versions(federation: Federation) -> Iterator[Finding]:
    for what, ours, theirs in (
        ("FedLap", VERSION, federation.version),
        ("Flower", flwr.__version__, federation.flower),
    ):
        if ours == theirs:
            yield good("version", f"{what} {ours}")
        else:
            yield bad(
                "version", f"{what} {ours} here, {theirs} in the federation: install {theirs}"
            )
    if federation.code not in ("", installed_code()):
        yield soon("version", "the code here is not the coordinator's: find out who changed it")
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        says = f"{', '.join(missing)} not installed: install FedLap with its extra `run`"
        yield bad("packages", says)
    else:
        yield good("packages", ", ".join(_PACKAGES))


def _superlink(federation: Federation, folder: Path) -> Iterator[Finding]:
    places = (folder / "ca.crt", folder / "superlink" / "ca.crt", folder / "ca" / "ca.crt")
    authority = next((path for path in places if path.is_file()), None)
    if authority is None:
        yield bad("authority", f"there is no {places[0]}: get it from the coordinator")
        return
    try:
        shown = read_certificate(authority)
    except ConfigError as error:
        yield bad("authority", str(error))
        return
    if certificate_fingerprint(shown) != federation.authority:
        yield bad(
            "authority",
            f"{authority} is not the authority of the federation file: get both files again and "
            "compare the SHA-256 with the coordinator",
        )
        return
    remedy = "the coordinator runs `fedlap keys issue --renew` and sends the new files"
    yield expiry("authority", shown.not_valid_after_utc, remedy)
    try:
        answer = probe(federation.servers[0], federation.port, authority)
    except RunError as error:
        yield bad("SuperLink", str(error))
        return
    yield from _answer(answer, federation, remedy)


def _answer(answer: Answer, federation: Federation, remedy: str) -> Iterator[Finding]:
    if answer.health == 200:
        yield good("SuperLink", f"{federation.address} is reached and healthy")
    else:
        yield bad(
            "SuperLink",
            f"{federation.address} answers {answer.health} to GET /health: ask the coordinator to "
            "look at the SuperLink and the proxy",
        )
    yield expiry("certificate", answer.certificate.not_valid_after_utc, remedy)
    missing = sorted(set(federation.servers) - set(names_of(answer.certificate)))
    if missing:
        yield bad("names", f"the certificate does not cover {', '.join(missing)}: {remedy}")
    else:
        yield good("names", f"the certificate covers {', '.join(federation.servers)}")
    yield _clocks(answer)
    if answer.control:
        yield soon(
            "Control API",
            "open to this machine: right for the coordinator's own; otherwise let other "
            "organisations through to /v1/fleet/ and /health only",
        )
    else:
        yield good("Control API", "not open to this machine")


def _clocks(answer: Answer) -> Finding:
    if answer.clock_off is None:
        return soon("clock", "the SuperLink did not tell the time: compare the clocks by hand")
    off = f"{abs(answer.clock_off):.1f} s {'behind' if answer.clock_off > 0 else 'ahead of'}"
    says = f"{off} the SuperLink's, give or take {answer.clock_doubt:.1f} s"
    if abs(answer.clock_off) - answer.clock_doubt > CLOCK_SECONDS:
        return bad("clock", f"{says}: at most {CLOCK_SECONDS:g} s are accepted, turn on NTP")
    return good("clock", says)


def _settings(settings: Settings, federation: Federation) -> Iterator[Finding]:
    count = len(federation.members)
    if method_class(settings.method).pooled:
        yield bad("settings", "method = 'central' needs all data in one place: choose another")
    elif settings.clients not in (0, count):
        yield bad(
            "settings",
            f"clients = {settings.clients} but the federation has {count} members: set clients = "
            f"{count}",
        )
    else:
        rounds = f"{settings.rounds} round{'s' * (settings.rounds != 1)}"
        yield good("settings", f"{settings.method}, {rounds}, {settings.backend}")
        yield from training_findings(settings, count)
    if settings.needs_basis and not backend_class(settings.backend).sealed:
        yield soon(
            "settings",
            f"backend = '{settings.backend}' hides nothing from the server: take mask or ckks",
        )
    encrypts = "ckks" in (settings.backend, settings.training_backend)
    if encrypts and importlib.util.find_spec("tenseal") is None:
        yield bad("settings", "the back end 'ckks' needs the package tenseal: install it")
    if settings.trust_on_first_use:
        yield soon(
            "settings", "trust-on-first-use accepts organisations that nobody pinned: leave it out"
        )
    if settings.insecure_no_pads:
        yield soon("settings", "insecure-no-pads leaves out a protection: leave it out")


def _data(subgraph: Subgraph, federation: Federation) -> Iterator[Finding]:
    name = subgraph.name
    try:
        member = federation.member(name)
    except ConfigError as error:
        yield bad("data", str(error))
        return
    if schema_digest(subgraph) != member.schema:
        yield bad(
            "schema",
            f"the classes or features of {name} are not those of its request: restore org.toml, or "
            "make a new request",
        )
    else:
        sizes = f"{subgraph.num_features} features, {subgraph.num_classes} classes"
        yield good("schema", f"{sizes}, as in the request")
    strangers = sorted(set(subgraph.partners) - set(federation.pins))
    if strangers:
        yield bad(
            "data",
            f"edges lead to {', '.join(strangers)}, not in the federation: correct the column "
            "owner, leave those edges out, or let them join",
        )
    else:
        yield good(
            "data", f"{name}: {subgraph.num_nodes:,} nodes, {len(subgraph.partners)} partners"
        )
    labelled = int(subgraph.train_mask.sum())
    if labelled:
        yield good("labels", f"{labelled:,} nodes to train on")
    else:
        yield soon("labels", f"{name} has no labelled training node: others must have some")


def _identity(data: Path, store: Path, name: str, federation: Federation) -> Finding:
    path = store / names.OFFLINE / names.IDENTITY
    if not path.exists():
        return bad("identity", f"there is no {path}: run `fedlap keys request`, or name --store")
    found = Identity.load(path).fingerprint
    pinned = federation.member(name).fingerprint
    if found != pinned:
        return bad(
            "identity",
            f"the store has {found} but the federation file pins {pinned}: restore the store, or "
            "send a new request",
        )
    merge_pins(org_pins(data / "org.toml"), federation.pins)
    return good("identity", f"{found}, as pinned by the others")


def _disk(
    place: Path, settings: Settings | None, federation: Federation, subgraph: Subgraph | None
) -> Finding:
    """Free space against what the offline phase will need, others taken to be of the same size."""
    there = next(each for each in (place, *place.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free / _MB
    needed = _SPARE_MB
    count = len(federation.members)
    if settings is not None and subgraph is not None and settings.needs_basis and count > 1:
        edges = count * subgraph.edge_index.shape[1] // 2
        shape = equal_parts(count * subgraph.num_nodes, count, edges)
        phase = Phase(settings.offline_spec, shape, settings.seed)
        needed += disk_of(phase, traffic_of(phase, settings.message_mb)).member
    says = f"{free:,.0f} MB free at {there}, about {needed:,.0f} MB needed"
    return good("disk", says) if free >= needed else bad("disk", f"{says}: make room")
