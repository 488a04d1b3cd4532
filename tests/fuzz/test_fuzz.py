"""Messages and replies that no honest party sends leave a run as it was: 2,000 of them."""

from random import Random

import pytest
from flwr.app import ArrayRecord, ConfigRecord, RecordDict

from fedlap_app.flower.client import handlers

from .clients import attack_clients
from .mutations import copy, mutated
from .runs import KINDS, RUN, recorded
from .server import attack_server

CLIENTS, SERVER = 150, 50


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_messages_leave_the_run_as_it_was(kind, tmp_path):
    known, expected = recorded(kind, tmp_path / "calm")
    found, ended = attack_clients(kind, tmp_path / "attacked", known, CLIENTS, seed=1)
    assert not found.faults, found.faults[0]
    assert found.outcomes.total() == CLIENTS
    assert found.outcomes["refused"] > found.outcomes.total() / 2
    assert ended == expected


@pytest.mark.parametrize("kind", ["plain", "mask", "alone", "personal"])
def test_mutated_replies_end_a_run_with_a_sentence(kind, tmp_path):
    known, _ = recorded(kind, tmp_path)
    found, _ = attack_server(kind, tmp_path, known, SERVER, seed=1)
    assert not found.faults, found.faults[0]
    assert found.outcomes.total() == SERVER
    assert found.outcomes["refused"] > SERVER / 3


def test_a_fault_of_the_app_is_found(tmp_path, monkeypatch):
    """What a handler did not foresee is a refusal to the server and a fault to the fuzzer."""
    known, _ = recorded("alone", tmp_path / "calm")
    honest = handlers.join

    def broken(organisation, content, run):
        content["config"]["version"].encode()
        return honest(organisation, content, run)

    monkeypatch.setattr(handlers, "join", broken)
    found, _ = attack_clients("alone", tmp_path / "attacked", known, 120, seed=1)
    assert any("AttributeError" in each or "KeyError" in each for each in found.faults)


def test_every_mutation_differs_and_leaves_the_message_alone():
    rng = Random(1)
    config = ConfigRecord({"run": RUN, "stage": 0, "data": bytes(64), "names": ["a", "b"]})
    content = RecordDict({"config": config, "arrays": ArrayRecord()})
    before = repr(copy(content))
    others = [repr(mutated(content, rng)) for _ in range(200)]
    assert repr(content) == before
    assert len(set(others)) > 100
