"""The organisations of a run: waiting for them and comparing them before anything starts."""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from logging import INFO, WARNING
from pathlib import Path

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.common.logger import log

from fedlap_app.errors import DataError, RunError
from fedlap_app.flower.grids.member_grid import LOOK, POLL_SECONDS, Member, MemberGrid
from fedlap_app.graphs.checks import check_name
from fedlap_app.graphs.lookalikes import alike
from fedlap_app.graphs.moments import LEAST
from fedlap_app.methods.base import Method
from fedlap_app.methods.organisation import DEPLOYED
from fedlap_app.privacy.federation import read_federation_file
from fedlap_app.settings import Settings
from fedlap_app.version import VERSION

_TEXTS = ("name", "version", "settings", "schema")
_COUNTS = {
    "num-classes": "classes",
    "num-features": "features",
    "num-categories": "categories",
    "num-inputs": "inputs",
    "asks": "asks",
}
_SOMETIMES = {
    "num-examples": "examples",  # of training that is not sealed
    "num-nodes": "nodes",  # where the method counts them
}
_LONGEST = 200
_LARGEST = 2**53
FEDERATION = "FEDLAP_FEDERATION"  # names the federation file; the SuperLink's start.sh sets it


def gather(grid: MemberGrid, settings: Settings) -> list[Member]:
    """Wait for the organisations, learn who they are and compare them before anything starts."""
    expected = _expected_members()
    nodes = _wait_for_nodes(grid, settings, expected)
    registered = grid.registered_names()
    content = RecordDict({"config": ConfigRecord({"version": VERSION})})
    messages = [
        Message(content=content, dst_node_id=node, message_type="query.join") for node in nodes
    ]
    replies = grid.send_and_receive(messages, timeout=settings.step_timeout)
    members = sorted((_member(reply) for reply in replies), key=lambda member: member.name)
    _compare_names(members, registered, expected)
    compare(members, settings)
    grid.introduce(members)
    log(INFO, "Organisations: %s", ", ".join(member.name for member in members))
    return members


def _expected_members() -> tuple[str, ...]:
    """Members of the federation, where a file says who they are."""
    path = os.environ.get(FEDERATION)
    return tuple(read_federation_file(Path(path)).pins) if path else ()


def _compare_names(
    members: Sequence[Member], registered: Mapping[int, str], expected: Collection[str]
) -> None:
    """Refuse a member that holds the data of another one."""
    for member in members:
        name = registered.get(member.node_id, member.name)
        if name in expected and name != member.name:
            raise RunError(
                f"the SuperNode of {name} has the data of {member.name}: set FEDLAP_ORG_DATA in "
                f"organisation.env to the folder of {name}, there, and start its processes again"
            )


def reads_together(members: Sequence[Member], method: Method) -> bool:
    """Whether means and deviations of columns are summed before training.

    Only where a table asks for it, so that a bag of words costs nothing. Two organisations of a
    deployment would show each other theirs: each takes its own.
    """
    settings = method.settings
    if not method.exchanges or not settings.summed_moments:
        return False
    asked = max(member.asks for member in members)
    few = asked == DEPLOYED and len(members) < LEAST
    if few:
        log(
            WARNING,
            "%s organisations would show each other the means of their features: each takes its "
            "own",
            len(members),
        )
    wanted = bool(asked) or settings.class_weights == "balanced"
    return wanted and len(members) > 1 and not few


def compare(members: Sequence[Member], settings: Settings) -> None:
    """Refuse organisations that do not fit together; the sentence says who and what to do."""
    names = [member.name for member in members]
    for name in names:
        if names.count(name) > 1:
            raise RunError(
                f"two nodes say that they are {name}: give each organisation its own folder"
            )
    if pair := alike(names):
        raise RunError(
            f"{pair[0]!r} and {pair[1]!r} look alike: one of them takes another name in its "
            "org.toml"
        )
    for member in members:
        if member.version != VERSION:
            raise RunError(
                f"{member.name} runs version {member.version} of the app and the server "
                f"{VERSION}: install the same version at both"
            )
        if member.settings != settings.digest():
            raise RunError(
                f"{member.name} sees other settings than the server: start the run again"
            )
        _compare_schema(member, members[0])
    if not settings.sealed and not any(member.examples for member in members):
        raise RunError(
            "no organisation has a labelled training node: set the column split to train for some "
            "labelled nodes, or raise train-ratio"
        )


def _compare_schema(member: Member, first: Member) -> None:
    for what in ("classes", "features"):
        mine, others = getattr(member, what), getattr(first, what)
        if mine != others:
            raise RunError(
                f"{member.name} has {mine} {what} and {first.name} {others}: all organisations "
                "must list the same ones in org.toml"
            )
    if member.schema != first.schema:
        raise RunError(
            f"{member.name} and {first.name} name their classes or features differently: all "
            "organisations must list the same names in the same order in org.toml"
        )


def _wait_for_nodes(grid: MemberGrid, settings: Settings, expected: Collection[str]) -> list[int]:
    """Node ids once enough are connected; without a number, once no more appear."""
    deadline = time.monotonic() + settings.join_timeout
    wanted = settings.clients or len(expected)
    seen = -1
    while True:
        nodes = sorted(grid.get_node_ids())
        enough = len(nodes) >= wanted if wanted else len(nodes) == seen
        if nodes and enough:
            break
        if time.monotonic() >= deadline:
            missing = sorted(set(expected) - set(grid.registered_names().values()))
            raise RunError(_too_few(len(nodes), wanted, missing, settings.join_timeout))
        seen = len(nodes)
        time.sleep(POLL_SECONDS)
    if settings.clients and len(nodes) > settings.clients:
        raise RunError(
            f"clients = {settings.clients} but {len(nodes)} nodes are connected: set clients = "
            f"{len(nodes)} or 0, or start the simulation with num-supernodes={settings.clients}"
        )
    return nodes


def _too_few(found: int, wanted: int, missing: Sequence[str], seconds: float) -> str:
    """Who is missing, if the federation file tells it, and what to do."""
    if missing:
        return f"{', '.join(missing)} did not connect within {seconds:g} s: {LOOK}"
    return (
        f"{found} of {wanted or 'any'} organisations are connected after {seconds:g} s: start the "
        "missing SuperNodes or raise join-timeout"
    )


def _member(reply: Message) -> Member:
    """A member as its reply to the first message shows it; anything else is refused."""
    record, node = reply.content.get("member"), reply.metadata.src_node_id
    texts = [record.get(key) for key in _TEXTS] if isinstance(record, ConfigRecord) else []
    counts: dict[str, int] = {}
    if isinstance(record, ConfigRecord):
        told = {field: record.get(key) for key, field in _COUNTS.items()}
        told |= {field: record.get(key, 0) for key, field in _SOMETIMES.items()}
        counts = {field: n for field, n in told.items() if isinstance(n, int) and 0 <= n < _LARGEST}
    plain = texts and all(isinstance(each, str) and len(each) <= _LONGEST for each in texts)
    if not plain or len(counts) < len(_COUNTS) + len(_SOMETIMES):
        raise RunError(
            f"node {node} does not say who it is as this version does: install version "
            f"{VERSION} there"
        )
    name, version, settings, schema = map(str, texts)
    try:
        check_name(name)
    except DataError as error:
        raise RunError(f"node {node} is refused: {error}") from None
    return Member(name, node, version, settings, schema, **counts)
