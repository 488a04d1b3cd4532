import json
from dataclasses import replace

import pytest

from fedlap_app.errors import RunError
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.run import run
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.flower.server.status import Board
from fedlap_app.store import names


class Mortal(InProcessGrid):
    """Loses the first replies of one client in the offline phase, or the server's patience."""

    def __init__(self, settings, losses=0, stop_at=None):
        from client_app.app import app

        configs = partition_configs(settings.clients)
        super().__init__(app, configs, settings.to_config(), run_id=new_run_id())
        self.losses, self.stop_at, self.number = losses, stop_at, 0

    def _deliver(self, message, context):
        self.number += 1
        if self.number == self.stop_at:
            raise KeyboardInterrupt
        reply = super()._deliver(message, context)
        offline = message.metadata.message_type == "query.offline"
        if offline and self.losses and context.node_config["partition-id"] == 1:
            self.losses -= 1
            raise RuntimeError("its process died")
        return reply


def status_of(home):
    (file,) = home.glob(f"runs/*/{names.STATUS}")
    return json.loads(file.read_text())


@pytest.fixture
def spectral(settings):
    return replace(settings, method="fedlap+", vectors=12, block=6)


def test_repeated_messages_are_counted_for_their_organisation(spectral, observer, own_home):
    summary = run(Mortal(spectral, losses=3), spectral, observer)
    found = status_of(own_home)
    assert found["state"] == "finished"
    retries = {name: facts["retries"] for name, facts in found["organisations"].items()}
    assert retries == {"bank-00": 0, "bank-01": 3, "bank-02": 0}
    assert {n: f["bytes_up"] for n, f in found["organisations"].items()} == summary["bytes_up"]


def test_a_run_that_is_stopped_says_where(spectral, observer, own_home):
    with pytest.raises(KeyboardInterrupt):
        run(Mortal(spectral, stop_at=8), spectral, observer)
    found = status_of(own_home)
    assert (found["state"], found["phase"]) == ("stopped", "offline")
    assert found["progress"]["total"] == spectral.offline_spec.rounds()
    assert all(facts["last_seen"] for facts in found["organisations"].values())


def test_phase_and_steps_are_written_as_they_come(settings, own_home, monkeypatch):
    monkeypatch.setattr("fedlap_app.flower.server.status._SECONDS", 0.0)
    grid = MemberGrid(Mortal(settings))
    board = Board(RunFolder.create(settings, grid.run.run_id), grid)
    assert status_of(own_home)["phase"] == "gathering"
    board.phase("training", "rounds", 9)
    assert status_of(own_home)["progress"] == {"done": 0, "total": 9, "unit": "rounds"}
    board.step(4, 9)
    assert status_of(own_home)["progress"]["done"] == 4
    board.end("failed", "no reply from bank-01")
    assert status_of(own_home)["reason"] == "no reply from bank-01"


def test_a_disk_without_room_does_not_end_the_run(settings, observer, monkeypatch):
    def full(self, name, value):
        if name == names.STATUS:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "write_json", full)
    assert run(Mortal(settings), settings, observer)["rounds"] == settings.rounds


def test_an_error_of_the_program_is_noted_without_its_text(
    settings, observer, own_home, monkeypatch
):
    def broken(grid, settings):
        raise ValueError("node IBAN-1234")

    monkeypatch.setattr("fedlap_app.flower.server.run.gather", broken)
    with pytest.raises(ValueError, match="IBAN"):
        run(Mortal(settings), settings, observer)
    found = status_of(own_home)
    assert (found["state"], found["reason"]) == ("failed", "ValueError")


def test_a_refusal_is_the_reason(settings, observer, own_home):
    with pytest.raises(RunError):
        run(Mortal(replace(settings, clients=3)), replace(settings, rounds=3), observer)
    assert "other settings" in status_of(own_home)["reason"]
