"""A server that gives one client another run configuration than the others."""

import logging

import pytest
from flwr.app import ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app import knobs
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.settings import KNOBS
from fedlap_app.store.packing import pack
from fedlap_app.sums.card import read_card
from fedlap_app.sums.job.messages import HelloReply, Request
from fedlap_app.sums.job.parts import asked

from .scene import RefusedError

VICTIM = "bank-01"
SWITCHES = [
    {"backend": "plain"},
    {"hide_topology": False},
    {"vectors": 9},
    {"operator": "laplacian"},
    {"learning_rate": 0.5},
]


@pytest.mark.parametrize("changes", SWITCHES)
def test_a_configuration_that_changes_after_the_card_was_shown(scene, changes):
    coordinator = scene.run("h1", rounds=1)
    with pytest.raises(
        RefusedError, match="settings of 'bank-01' changed after it showed its card"
    ):
        scene.ask(VICTIM, coordinator.requests[VICTIM], **changes)
    assert not scene.contributions(VICTIM)


@pytest.mark.parametrize("changes", SWITCHES)
def test_another_configuration_gets_another_card_that_nobody_else_takes(scene, changes):
    first = scene.card(VICTIM, "h1")
    other = scene.card(VICTIM, "h1", **changes)
    assert first != other
    cards = [scene.card(name, "h1") for name in scene.names if name != VICTIM] + [other]
    request = Request("cards", "00" * 16, 0, pack(b"h1", *cards))
    with pytest.raises(RefusedError, match=r"runs other settings than|changed after"):
        scene.ask(VICTIM, request, **changes)
    with pytest.raises(RefusedError, match="runs other settings than"):
        scene.ask("bank-00", request)


@pytest.mark.parametrize("changes", SWITCHES[:4])
@pytest.mark.parametrize("rounds", [2, 4])
def test_a_configuration_that_changes_within_a_job(scene, changes, rounds):
    coordinator = scene.run("h1", rounds=rounds)
    with pytest.raises(RefusedError, match=r"changed during job"):
        scene.ask(VICTIM, coordinator.requests[VICTIM], **changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"backend": "plain"}, "backends = ckks, mask does not allow backend = 'plain'"),
        ({"hide_topology": False}, "hide-topology = true does not allow this run"),
        ({"backend": "ckks", "insecure_no_pads": True}, "unpadded-sums = false does not allow"),
    ],
)
def test_a_run_that_asks_all_for_less_protection(scene, changes, reason, caplog):
    with pytest.raises(RefusedError, match=reason):
        scene.run("h1", **changes)
    assert not any(scene.contributions(name) for name in scene.names)


def test_what_a_policy_allows_is_said_in_its_own_log(scene, caplog):
    for name in scene.names:
        scene.add(name, "policy", "hide-topology = false", 'backends = ["plain"]')
    scene.settings = type(scene.settings)(**{**vars(scene.settings), "backend": "plain"})
    with caplog.at_level(logging.WARNING, "fedlap"):
        scene.run("h1", rounds=2)
    said = [record.getMessage() for record in caplog.records if VICTIM in record.getMessage()]
    assert any("the server reads every number" in line for line in said)


def test_a_simulation_is_what_the_node_says(scene, small):
    """A folder of its own makes a deployment, whatever the run configuration names."""
    changes = {"data": str(scene.root / "orgs"), "store_dir": str(scene.root / "elsewhere")}
    reply = scene.ask(VICTIM, Request("hello", "", 0, b"h1"), **changes)
    assert not HelloReply.unpack(reply).simulated
    assert not (scene.root / "elsewhere").exists()
    with pytest.raises(RefusedError, match="backends = ckks, mask does not allow"):
        scene.run("h2", backend="plain", **changes)


UNSHARED = {
    "data": "/elsewhere",
    "run_dir": "/elsewhere",
    "store_dir": "/elsewhere",
    "device": "cpu",
    "encryption_processes": 256,
    "processes": 2,
    "join_timeout": 1.0,
    "step_timeout": 1.0,
    "straggler_timeout": 0.0,
    "min_clients": 1,
    "message_mb": 512.0,
    "resume": False,
    "refresh_basis": True,
}


def test_what_is_not_compared_changes_no_byte(scene):
    """Settings outside of the digest, altered at one member at every step after its cards."""
    private = {key for key, entry in KNOBS.items() if knobs.domain_of(entry).private}
    assert set(map(knobs.key_of, UNSHARED)) == private
    coordinator = scene.run("h1", rounds=2)
    while not coordinator.done:
        backup, request = scene.snapshot(VICTIM), coordinator.requests[VICTIM]
        scene.run("", coordinator=coordinator, rounds=1)
        first = next(reply for name, _, reply in reversed(scene.log) if name == VICTIM)
        after = scene.snapshot(VICTIM)
        scene.restore(VICTIM, backup)
        assert scene.ask(VICTIM, request, **UNSHARED) == first
        scene.restore(VICTIM, after)


def test_a_node_with_a_folder_and_a_partition_is_no_simulation(scene):
    """Nothing beside the folder in the node's configuration makes its keys guessable."""
    (config,) = folder_configs([scene.folders[VICTIM]])
    config = {**config, "partition-id": 1, "num-partitions": 3}
    settings = scene.settings.to_config()
    grid = InProcessGrid(app, [config], settings, run_id=new_run_id())
    content = RecordDict(
        {
            "own": ConfigRecord({"asked": asked("hello", "", 0)}),
            "common": ConfigRecord({"body": b"h1"}),
        }
    )
    (node,) = grid.get_node_ids()
    (reply,) = grid.send_and_receive([Message(content, node, "query.offline")])
    found = HelloReply.unpack(reply.content["reply"]["body"])
    assert not found.simulated
    assert read_card(found.card).fingerprint == scene.marks[VICTIM]
