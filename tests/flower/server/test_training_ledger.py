"""What a training run enters into the ledgers of the organisations."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.server.run import run
from fedlap_app.privacy.ledger import FILE


class Repeating(InProcessGrid):
    """Asks for everything twice, as after a lost reply."""

    def _deliver(self, message, context):
        super()._deliver(message, context)
        return super()._deliver(message, context)


@pytest.fixture
def settings(settings, tmp_path):
    return replace(settings, store_dir=str(tmp_path / "stores"))


def ledgers(settings):
    found = {}
    for path in sorted(Path(settings.store_dir).glob(f"*/jobs/train-*/{FILE}")):
        ledger = json.loads(path.read_text())
        found[ledger["organisation"]] = ledger
    return found


def counts(ledger, way, kind):
    return [
        (each["messages"], each["values"], each["readable_by"])
        for each in ledger["entries"]
        if (each["way"], each["kind"]) == (way, kind)
    ]


@pytest.mark.parametrize("grid", [InProcessGrid, Repeating])
def test_each_round_is_entered_once(settings, observer, grid):
    made = grid(app, partition_configs(3), settings.to_config(), run_id=new_run_id())
    run(made, settings, observer)
    found = ledgers(settings)
    assert set(found) == {"bank-00", "bank-01", "bank-02"}
    for ledger in found.values():
        assert ledger["phase"] == "training"
        assert ledger["state"] == "finished"
        ((messages, values, readers),) = counts(ledger, "sent", "model updates")
        assert messages == settings.rounds
        assert readers == ["server"]
        ((received, numbers, _),) = counts(ledger, "received", "model")
        assert received >= settings.rounds + 1
        assert numbers * messages == values * received


def test_local_training_sends_scores_only(settings, observer):
    alone = replace(settings, method="local")
    grid = InProcessGrid(app, partition_configs(3), alone.to_config(), run_id=new_run_id())
    run(grid, alone, observer)
    for ledger in ledgers(alone).values():
        assert [each["kind"] for each in ledger["entries"]] == ["scores and counts"]
        assert ledger["state"] == "finished"


def test_learned_rows_are_readable_by_the_server(settings, observer):
    rows = replace(settings, method="fedlap", structure_width=4)
    grid = InProcessGrid(app, partition_configs(3), rows.to_config(), run_id=new_run_id())
    run(grid, rows, observer)
    for ledger in ledgers(rows).values():
        ((messages, values, readers),) = counts(ledger, "sent", "learned rows")
        assert messages == rows.rounds
        assert values > 0
        assert readers == ["server"]
