"""A dishonest coordinator's bundle on real SuperNodes: who runs it, and who does not.

Its ServerApp labels its own run as a kind of task, in the SuperLink's database, asks every client
and writes down what they said. One organisation runs Flower's own SuperExec, to show what the
bundle gets there.
"""

import json
import shutil
from pathlib import Path

import pytest
from flwr.supercore.constant import TaskType

from fedlap_app.deploy.check_organisation import check_organisation
from fedlap_app.deploy.stock import find_stock_processes
from fedlap_app.graphs.federation import DataSpec
from tests.adversary.evil import evil_modules
from tests.integration.federation import ROOT, Federation
from tests.integration.network import Loopback
from tests.integration.processes import wait_for

pytestmark = pytest.mark.integration
BANKS = DataSpec(dataset="banks", clients=3, accounts=400)
STOCK = "bank-02"
LIMIT = 200.0
SERVER = """
import json, os, sqlite3, time

from flwr.app import Message, RecordDict
from flwr.serverapp import ServerApp

LABEL, DATABASE, TOLD = {label!r}, {database!r}, {told!r}
app = ServerApp()


def call_it(kind, run_id):
    signed = run_id - 2**64 if run_id >= 2**63 else run_id
    with sqlite3.connect(DATABASE, timeout=60) as database:
        database.execute("UPDATE task SET type = ? WHERE run_id = ?", (kind, signed))


def replies():
    with sqlite3.connect(DATABASE, timeout=60) as database:
        return database.execute("SELECT COUNT(*) FROM message_res").fetchone()[0]


@app.main()
def main(grid, context):
    before, patience = replies(), time.monotonic() + 120
    while len(list(grid.get_node_ids())) < context.run_config["clients"]:
        time.sleep(1)
    nodes = list(grid.get_node_ids())
    asked = [Message(RecordDict(), dst_node_id=node, message_type="query.join") for node in nodes]
    left = set(grid.push_messages(asked))
    call_it(LABEL, context.run_id)
    while replies() < before + len(nodes) and time.monotonic() < patience:
        time.sleep(1)
    call_it("flwr-serverapp", context.run_id)
    told = []
    while left:
        time.sleep(0.5)
        for reply in grid.pull_messages(left):
            left.discard(reply.metadata.reply_to_message_id)
            told.append(
                dict(error=reply.error.reason)
                if reply.has_error()
                else dict((name, dict((key, str(value)) for key, value in record.items()))
                          for name, record in reply.content.items())
            )
    with open(TOLD + ".part", "w") as file:
        json.dump(told, file)
    os.replace(TOLD + ".part", TOLD)
"""


@pytest.fixture(scope="module")
def federation(tmp_path_factory):
    made = Federation(tmp_path_factory.mktemp("banks"), BANKS, Loopback())
    start = made.folder(STOCK) / "start.sh"
    ours = 'exec "$FEDLAP_BIN/python" -I -m client_app.superexec'
    assert ours in start.read_text()
    start.write_text(start.read_text().replace(ours, "exec flower-superexec"))
    with made:
        yield made


def ask(federation, folder: Path, kind: str, count: int) -> tuple[list[dict], Path]:
    """What the clients of a run said whose SuperLink calls it a task of this kind."""
    project = folder / "app"
    told = folder / "told.json"
    server = SERVER.format(label=str(kind), database=str(federation.database), told=str(told))
    for name, text in {**evil_modules(str(folder / "mark")), "server_app/app.py": server}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, project)
    run = federation.submit({"clients": count}, project)
    (folder / "mark").unlink()  # `flwr run` imports what it bundles, at the coordinator
    wait_for("every client answered", told.exists, LIMIT, lambda: _failed(federation, run))
    return json.loads(told.read_text()), folder / "mark"


def _failed(federation, run) -> bool:
    return federation.status(run) == "finished:failed"


def _log(federation, name: str) -> str:
    return (federation.folder(name) / "state" / "clientapp.log").read_text()


@pytest.mark.ci
def test_only_flowers_own_superexec_runs_what_was_delivered(federation, tmp_path):
    told, mark = ask(federation, tmp_path, TaskType.CLIENT_APP, 3)
    stolen = [each for each in told if "stolen" in each]
    identity = (federation.store(STOCK) / "offline" / "identity").read_bytes()
    assert [each["stolen"]["identity"] for each in stolen] == [str(identity)]
    assert mark.exists()
    assert sorted(each["member"]["name"] for each in told if each not in stolen) == [
        "bank-00",
        "bank-01",
    ]
    for name in set(federation.names) - {STOCK}:
        secret = (federation.store(name) / "offline" / "identity").read_bytes()
        assert str(secret) not in json.dumps(told)
        assert "has other code than the package that is installed" in _log(federation, name)
        assert not (federation.folder(name) / "state" / "flwr" / "apps").exists()
    checks = {each.what: each for each in check_organisation(federation.folder(STOCK))}
    assert checks["start commands"].failed
    assert not any(each.failed for each in check_organisation(federation.folder("bank-00")))
    for name in federation.names:
        found = find_stock_processes(federation.folder(name) / "data")
        assert [each.what for each in found] == (["SuperExec"] if name == STOCK else []), name


@pytest.mark.parametrize("kind", [each for each in TaskType if each != TaskType.CLIENT_APP])
def test_no_label_of_the_superlink_makes_an_organisation_run_it(federation, tmp_path, kind):
    federation.organisations[STOCK].stop()
    wait_for("two are left", lambda: federation.online() == 2)
    told, mark = ask(federation, tmp_path, kind, 2)
    assert not mark.exists()
    assert len(told) == 2
    for name in set(federation.names) - {STOCK}:
        assert not (federation.folder(name) / "state" / "flwr" / "apps").exists()
    if kind == TaskType.AGENT_APP:  # a SuperNode makes a ClientApp's task of every other label
        sentence = f"a task of kind '{kind}' is refused: only this organisation's ClientApp runs"
        assert [each["error"] for each in told] == [sentence] * 2
        assert sentence in _log(federation, "bank-00")
    else:
        assert not any("stolen" in each for each in told)
