"""A dishonest coordinator on real SuperNodes: one member switched, less protection, a stranger.

Its ServerApp changes the run configuration in the SuperLink's database after the first members have
fetched it, and hands out the cards that it got all the same.
"""

import json
import shutil
import tomllib

import pytest

from tests.integration.federation import ROOT, Federation
from tests.integration.network import Loopback
from tests.integration.processes import wait_for
from tests.integration.test_consent import BANKS, CONFIG

pytestmark = pytest.mark.integration
LIMIT = 300.0
VICTIM, STRANGER = "bank-01", "bank-02"
CLIENT = """
from flwr.clientapp import ClientApp

app = ClientApp()
"""
SERVER = """
import json, os, sqlite3, time

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp

from fedlap_app.store.packing import pack
from fedlap_app.sums.card import Roster, read_card
from fedlap_app.sums.job.messages import HelloReply
from fedlap_app.sums.job.parts import asked

CHANGED, DATABASE, TOLD = {changed!r}, {database!r}, {told!r}
app = ServerApp()


def switch(run_id, config):
    signed = run_id - 2**64 if run_id >= 2**63 else run_id
    with sqlite3.connect(DATABASE, timeout=60) as database:
        database.execute(
            "UPDATE run SET override_config = ? WHERE run_id = ?", (json.dumps(config), signed)
        )


def ask(grid, nodes, kind, job, common):
    own = ConfigRecord(dict(asked=asked(kind, job, 0)))
    content = RecordDict(dict(own=own, common=ConfigRecord(dict(body=common))))
    left = set(grid.push_messages([Message(content, node, "query.offline") for node in nodes]))
    found = []
    while left:
        time.sleep(0.3)
        for reply in grid.pull_messages(left):
            left.discard(reply.metadata.reply_to_message_id)
            found.append(reply.content)
    return found


@app.main()
def main(grid, context):
    while len(list(grid.get_node_ids())) < context.run_config["clients"]:
        time.sleep(1)
    *others, victim = grid.get_node_ids()
    replies = ask(grid, others, "hello", "", b"h1")
    switch(context.run_id, {{**context.run_config, **CHANGED}})
    replies += ask(grid, [victim], "hello", "", b"h1")
    cards = [HelloReply.unpack(reply["reply"]["body"]).card for reply in replies]
    roster = Roster(tuple(sorted(map(read_card, cards), key=lambda card: card.name)))
    settings = sorted(card.settings for card in roster.cards)
    replies = ask(grid, [*others, victim], "cards", roster.job, pack(b"h1", *cards))
    said = [str(reply["refusal"]["reason"]) if "refusal" in reply else "" for reply in replies]
    with open(TOLD + ".part", "w") as file:
        json.dump(dict(settings=settings, said=said), file)
    os.replace(TOLD + ".part", TOLD)
"""


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    with Federation(tmp_path_factory.mktemp("switched"), BANKS, Loopback()) as made:
        yield made


def left_something(federation, name):
    """Whether a member answered more than a hello in some job."""
    return any(federation.store(name).glob("offline-*-answered-*"))


def dishonest(federation, folder, changed):
    """What the members said to a coordinator that gave one of them another configuration."""
    project, told = folder / "app", folder / "told.json"
    (project / "server_app").mkdir(parents=True)
    (project / "client_app").mkdir()
    (project / "client_app" / "__init__.py").write_text("")
    (project / "client_app" / "app.py").write_text(
        "from flwr.clientapp import ClientApp\n\napp = ClientApp()\n"
    )
    facts = {"changed": changed, "database": str(federation.database), "told": str(told)}
    (project / "server_app" / "__init__.py").write_text("")
    (project / "server_app" / "app.py").write_text(SERVER.format(**facts))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, project)
    run = federation.submit(CONFIG, project)
    failed = lambda: federation.status(run) == "finished:failed"  # noqa: E731
    wait_for("every member answered", told.exists, LIMIT, failed)
    return json.loads(told.read_text())


@pytest.mark.parametrize("changed", [{"vectors": 6}, {"backend": "plain"}])
def test_one_member_is_switched_and_nobody_begins(federation, tmp_path, changed):
    told = dishonest(federation, tmp_path, changed)
    assert len(set(told["settings"])) == 2, "the attack itself: one card is of other settings"
    assert len(told["said"]) == 3
    assert all("runs other settings than" in each for each in told["said"])
    assert not any(left_something(federation, name) for name in federation.names)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"backend": "plain"}, "backends = ckks, mask does not allow backend = 'plain'"),
        ({"backend": "ckks", "insecure-no-pads": True}, "unpadded-sums = false does not allow"),
    ],
)
def test_a_run_asks_for_less_protection(federation, changed, reason):
    outcome = federation.run({**CONFIG, **changed}, LIMIT)
    assert outcome.status == "finished:failed"
    assert reason in outcome.error
    assert not any(left_something(federation, name) for name in federation.names)


def test_a_stranger_joins_a_run_that_asks_for_trust(federation):
    """The victim's federation file does not know the third organisation."""
    file = federation.folder(VICTIM) / "federation.toml"
    before = file.read_text()
    start, *members = before.split("[[members]]")
    known = [each for each in members if tomllib.loads(each)["name"] != STRANGER]
    assert len(known) == 2
    file.write_text("[[members]]".join([start, *known]))
    try:
        outcome = federation.run({**CONFIG, "trust-on-first-use": True}, LIMIT)
    finally:
        file.write_text(before)
    assert outcome.status == "finished:failed"
    assert f"of '{STRANGER}' is not pinned" in outcome.error
    assert not left_something(federation, VICTIM)
    assert not (federation.store(VICTIM) / "offline" / "peers.json").exists()


def test_the_honest_run_after_all_that(federation):
    assert federation.run(CONFIG, LIMIT).summary["clients"] == 3
