"""Training rounds that go on with those present."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from client_app.app import app
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.flower.grids.local_grid import InProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.server.run import run
from fedlap_app.settings import Settings


class LossyGrid(InProcessGrid):
    """One client gives no answer to some of its training messages."""

    def __init__(self, settings, silent_rounds, refuses=False):
        configs = partition_configs(settings.clients)
        super().__init__(app, configs, settings.to_config(), run_id=new_run_id())
        self.silent_rounds, self.refuses = silent_rounds, refuses
        self.victim = sorted(self.get_node_ids())[-1]

    def _answer(self, message):
        config = message.content.get("config")
        number = config.get("server-round") if config else None
        is_hit = message.metadata.dst_node_id == self.victim and number in self.silent_rounds
        if is_hit and self.refuses:
            del message.content["arrays"]
        elif is_hit:
            return None
        return super()._answer(message)


@pytest.fixture
def patient(settings):
    return replace(settings, rounds=3, step_timeout=2.0, min_clients=2, straggler_timeout=0.3)


@pytest.mark.parametrize("method", ["fedavg", "fedlap"])
@pytest.mark.parametrize("refuses", [False, True])
def test_a_round_goes_on_with_those_present(patient, observer, method, refuses):
    settings = replace(patient, method=method)
    summary = run(LossyGrid(settings, {2}, refuses), settings, observer)
    assert summary["absences"] == {"bank-02": 1}
    assert sorted(summary["client_accuracy"]) == ["bank-00", "bank-01", "bank-02"]
    metrics = (Path(summary["run_folder"]) / "metrics.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in metrics.splitlines()]
    assert [row["round"] for row in rows] == [1, 2, 3]


def test_the_straggler_timeout_is_waited_for_and_no_longer(patient, observer):
    settings = replace(patient, straggler_timeout=1.0, step_timeout=60.0)
    started = time.monotonic()
    run(LossyGrid(settings, {2}), settings, observer)
    assert 1.0 <= time.monotonic() - started < 30.0


def test_a_quorum_changes_nothing_while_all_answer(patient, observer):
    with_quorum = run(LossyGrid(patient, set()), patient, observer)
    strict = replace(patient, min_clients=0)
    without = run(LossyGrid(strict, set()), strict, observer)
    assert with_quorum["absences"] == {}
    for key in ("accuracy", "loss", "client_accuracy"):
        assert with_quorum[key] == without[key]


def test_too_few_replies_name_who_is_missing(patient, observer):
    settings = replace(patient, min_clients=3)
    with pytest.raises(RunError, match="no reply from bank-02 within 2 s"):
        run(LossyGrid(settings, {2}), settings, observer)


def test_more_than_all_cannot_be_needed():
    with pytest.raises(ConfigError, match="min-clients = 4 is more than clients = 3"):
        replace(Settings(), clients=3, min_clients=4)
