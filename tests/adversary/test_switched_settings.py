"""A server that gives one client another run configuration than the others."""

import logging

import pytest

from fedlap_app.store.packing import pack
from fedlap_app.sums.job.messages import Request

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
    from fedlap_app.sums.job.messages import HelloReply

    reply = scene.ask(VICTIM, Request("hello", "", 0, b"h1"), **changes)
    assert not HelloReply.unpack(reply).simulated
    assert not (scene.root / "elsewhere").exists()
    with pytest.raises(RefusedError, match="backends = ckks, mask does not allow"):
        scene.run("h2", backend="plain", **changes)
