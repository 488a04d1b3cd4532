"""The offline phase at a client: from Flower's records to the member's requests, and back.

A message that is too large comes in parts (`put`), which wait in the store until the request that
names their hashes; a reply that is too large is kept there, and its parts are fetched (`get`).
"""

import os
import time
from weakref import WeakKeyDictionary

from flwr.app import ConfigRecord, RecordDict

from fedlap_app.errors import ProtocolError
from fedlap_app.methods.organisation import Organisation
from fedlap_app.privacy.pins import federation_pins, merge_pins, org_pins
from fedlap_app.settings import Settings
from fedlap_app.store import names
from fedlap_app.store.job_files import JobFiles
from fedlap_app.store.packing import Data
from fedlap_app.sums.ckks.workers import use_processes
from fedlap_app.sums.job.answered import Answered
from fedlap_app.sums.job.member import Member
from fedlap_app.sums.job.messages import Request
from fedlap_app.sums.job.parts import (
    GET,
    MOST_BYTES,
    MOST_CARD_BYTES,
    NO_JOB,
    PROGRAM,
    PUT,
    count_hashes,
    count_parts,
    hashes_of,
    join_parts,
    part_bytes,
    part_of,
    read_asked,
    require_room,
)
from fedlap_app.sums.job.party import Party
from fedlap_app.sums.job.secrets import Secrets, simulated_secrets, stored_secrets

_WHICH = ("common", "own")
_CORES = os.cpu_count() or 1
_parties: "WeakKeyDictionary[Organisation, dict[str, Party]]" = WeakKeyDictionary()


def step(organisation: Organisation, content: RecordDict) -> RecordDict:
    """Answer one message of the offline phase; the store is locked meanwhile."""
    started = time.perf_counter()
    own, common = _record(content, "own"), _record(content, "common")
    kind, job, number = read_asked(str(own.get("asked")))
    common_part, own_part, reply_part = (_parts(w, job, number) for w in (*_WHICH, "reply"))
    limit = part_bytes(organisation.settings.message_mb)
    with organisation.store.lock():
        party = _party(organisation, _program(organisation, own))
        post = party.post
        if kind == PUT:
            _put(party, own, job, number, limit)
            return _reply(b"", b"", 0.0)
        if kind == GET:
            whole = post.read(reply_part, 1)[0]
            return _reply(part_of(whole, _index(own), limit), b"", 0.0)
        request = Request(
            kind=kind,
            job="" if job == NO_JOB else job,
            step=number,
            common=_whole(post, common, common_part, limit),
            own=_whole(post, own, own_part, limit),
        )
        member = Member(party)
        reply = member.answer(request.require_possible())
        body, hashes = reply, b""
        if count_parts(len(reply), limit) > 1:
            body, hashes = part_of(reply, 0, limit), hashes_of(reply, limit)
            post.write(reply_part, reply)
        _clean(post, reply_part)
    seconds = time.perf_counter() - started
    return _reply(body, hashes, seconds, *member.seconds_secure)


def _reply(
    body: Data, hashes: bytes, seconds: float, sealing: float = 0.0, opening: float = 0.0
) -> RecordDict:
    reply = ConfigRecord({"seconds": [seconds, sealing, opening]})
    if len(body):
        reply["body"] = bytes(body)
    if hashes:
        reply["hashes"] = hashes
    return RecordDict({"reply": reply})


def _record(content: RecordDict, name: str) -> ConfigRecord:
    record = content.get(name)
    if not isinstance(record, ConfigRecord):
        raise ProtocolError(
            f"the message has no part {name!r}: it was not made by this app's server"
        )
    return record


def _bytes(record: ConfigRecord, key: str) -> bytes:
    value = record.get(key, b"")
    if not isinstance(value, bytes):
        raise ProtocolError(f"the message has no bytes {key!r}: it was not made by this server")
    return value


def _index(own: ConfigRecord) -> int:
    index = own.get("index")
    if not isinstance(index, int) or index < 0:
        raise ProtocolError("the message names no part: it was not made by this app's server")
    return index


def _put(party: Party, own: ConfigRecord, job: str, step: int, limit: int) -> None:
    """Keep one part of the next request, if one is expected that could be so long."""
    which, index, body = own.get("which"), _index(own), _bytes(own, "body")
    most = _room_for(party, job, step)
    if which not in _WHICH or not most or not 0 < len(body) <= limit:
        raise ProtocolError(
            f"a part of {len(body)} bytes came for step {step} of job {job}, which does not expect "
            "it: the message was altered, start the run again"
        )
    require_room(index + 1, limit, most)
    _clean(party.post, *(f"{_parts(each, job, step)}-" for each in _WHICH))
    party.post.write(f"{_parts(str(which), job, step)}-{index}", body)


def _parts(which: str, job: str, step: int) -> str:
    """What the parts of a request or a reply are called, but for their number."""
    return names.PART(which=which, job=job, step=step, index="")


def _room_for(party: Party, job: str, step: int) -> int:
    """Bytes that the common or the own part of a request may have; none: it is not expected."""
    if job == NO_JOB or (step == 0 and party.pending() is None):
        return 0
    if step == 0:
        return MOST_CARD_BYTES
    last = Answered.read(party.answers(job))
    expected = (last.step, last.step + bool(last.expects)) if last is not None else ()
    return MOST_BYTES // len(_WHICH) if step in expected else 0


def _whole(post: JobFiles, record: ConfigRecord, name: str, limit: int) -> Data:
    """Content of a request that came at once or in parts."""
    hashes = _bytes(record, "hashes")
    if not hashes:
        return _bytes(record, "body")
    every = [f"{name}-{index}" for index in range(count_hashes(hashes, limit))]
    return join_parts([post.read(each, 1)[0] for each in every if post.has(each)], hashes)


def _clean(post: JobFiles, *keep: str) -> None:
    """Delete the parts of requests and replies but for those whose names begin like this."""
    if os.path.isdir(post.path):  # noqa: PTH112 - for every message, so the quicker one
        post.drop(*(path.name for path in post.path.iterdir() if not path.name.startswith(keep)))


def _program(organisation: Organisation, own: ConfigRecord) -> str:
    """The program that a message belongs to, one of those that the settings of the run have."""
    programs = organisation.settings.possible_programs
    name = own.get(PROGRAM, programs[0])
    if name not in programs:
        raise ProtocolError(
            f"the message belongs to the program {str(name)[:40]!r}, which a run of method "
            f"'{organisation.settings.method}' has not: it has {', '.join(programs)}"
        )
    return str(name)


def _party(organisation: Organisation, program: str) -> Party:
    """The organisation in a program; kept while its data and settings stay the same."""
    use_own_processes(organisation.settings)
    parties = _parties.setdefault(organisation, {})
    if program in parties:
        return parties[program]
    secrets, pinned = _known(organisation)
    party = Party(
        subgraph=organisation.subgraph,
        spec=organisation.settings.spec_of(program),
        secrets=secrets,
        root=organisation.store.root,
        policy=organisation.policy,
        # A simulated job follows from the settings of the phase alone.
        run=organisation.settings.digest() if organisation.deployed else "",
        pinned=pinned,
    )
    parties[program] = party
    return party


def use_own_processes(settings: Settings) -> None:
    """Encrypt in as many processes as the run asks for and the organisation has cores."""
    use_processes(min(settings.encryption_processes, _CORES))


def secrets_of(organisation: Organisation) -> Secrets:
    """The organisation's secrets."""
    return _known(organisation)[0]


def _known(organisation: Organisation) -> tuple[Secrets, frozenset[str]]:
    """The organisation's secrets, and whom it has pinned by itself."""
    if organisation.folder is None:
        simulated = simulated_secrets(organisation.settings.seed, organisation.name)
        return simulated, organisation.named
    pins = org_pins(organisation.folder / "org.toml")
    trust = organisation.settings.trust_on_first_use and organisation.policy.trust_on_first_use
    own_pins = frozenset(pins)
    where = organisation.store.root / names.OFFLINE
    if organisation.federation is not None:
        own = stored_secrets(where, {}, trust=False).identity.fingerprint
        given = federation_pins(organisation.federation, organisation.name, own)
        pins = merge_pins(pins, given)
    return stored_secrets(where, pins, trust=trust), own_pins
