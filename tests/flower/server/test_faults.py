"""Faults that reach sealed training without any process dying: the result stays the same bits."""

import copy
import shutil
import time
from dataclasses import replace

import numpy as np
import pytest

from client_app.app import app
from fedlap_app.errors import FedLapError, RunError
from fedlap_app.flower.client.organisation import _organisations as organisations_in_memory
from fedlap_app.flower.client.training_state import TrainingState
from fedlap_app.flower.course import pack_standing
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.server.run import run
from fedlap_app.methods.step import MODEL
from tests.adversary.scene import Scene
from tests.flower.server.models import kept_in, same

DAY = 86_400.0


@pytest.fixture
def settings(settings):
    return replace(settings, training_backend="mask", self_training=1)


def played(root, settings, observer, grid=InProcessGrid):
    """Scene, summary and the models of all after a run of a deployment."""
    scene = Scene(root, settings)
    made = grid(app, folder_configs(scene.folders.values()), settings.to_config(),
                run_id=new_run_id())  # fmt: skip
    made.scene = scene
    summary = run(made, settings, observer)
    return [kept_in(scene.store(name), summary["run_id"]) for name in scene.names]


class TwiceGrid(InProcessGrid):
    """Every message comes twice, and once more three messages later; the last answer counts."""

    differing = 0

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.late = []

    def _deliver(self, message, context):
        self.late.append((message, context))
        if len(self.late) > 3:
            super()._deliver(*self.late.pop(0))
        first = copy.deepcopy(super()._deliver(message, context))
        again = super()._deliver(message, context)
        sealed = message.metadata.message_type == "train.sealed"
        TwiceGrid.differing += sealed and repr(first.content) != repr(again.content)
        return again


class ClockGrid(InProcessGrid):
    """The clock jumps by a day, forward and back, between any two messages."""

    jumps = 0

    def _deliver(self, message, context):
        self.jumps += 1
        shift = DAY * (self.jumps % 3 - 1)
        honest = time.time
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(time, "time", lambda: honest() + shift)
            return super()._deliver(message, context)


class BackupGrid(InProcessGrid):
    """The store of the first organisation is copied while it trains, and put back soon after."""

    asked, until = 0, 5

    def _deliver(self, message, context):
        if message.metadata.message_type == "train.sealed" and context.node_id == 101:
            self.asked += 1
            store = self.scene.store(self.scene.names[0])
            place = self.scene.root / "backup"
            if self.asked == 3:
                shutil.copytree(store, place)
            if self.asked == self.until and place.is_dir():
                shutil.rmtree(store)
                place.rename(store)
                organisations_in_memory.clear()
        return super()._deliver(message, context)


class PartedGrid(InProcessGrid):
    """From one message on, two of three organisations cannot be reached."""

    left = 0

    def _answer(self, message):
        self.left -= 1
        reached = message.metadata.dst_node_id == min(self.get_node_ids())
        return super()._answer(message) if self.left >= 0 or reached else None


@pytest.mark.parametrize("grid", [TwiceGrid, ClockGrid])
def test_messages_and_clocks_out_of_order_change_no_bit(grid, settings, observer, tmp_path):
    """The keys of both deployments differ, so that only what they compute is compared."""
    TwiceGrid.differing = 0
    settings = replace(settings, dropout=0.0, input_dropout=0.0)
    calm = played(tmp_path / "calm", settings, observer)
    disturbed = played(tmp_path / "disturbed", settings, observer, grid)
    assert same(*calm, *disturbed)
    assert not TwiceGrid.differing


def test_a_store_that_was_copied_back_stops_or_goes_on_to_the_same_bits(
    settings, observer, tmp_path
):
    settings = replace(settings, dropout=0.0, input_dropout=0.0)
    calm = played(tmp_path / "calm", settings, observer)
    try:
        models = played(tmp_path / "restored", settings, observer, BackupGrid)
    except FedLapError:  # one sentence, and nothing of another kind
        return
    assert same(calm[0], *models)


class LateGrid(BackupGrid):
    """The store is put back when some rounds have passed."""

    until = 7


def test_a_store_of_some_rounds_ago_is_named_with_what_to_do(settings, observer, tmp_path):
    settings = replace(settings, rounds=6)
    with pytest.raises(RunError, match=r"bank-00: .*set back.*resume = false"):
        played(tmp_path, settings, observer, LateGrid)


def test_a_member_that_works_out_another_bit_is_named(settings, observer, tmp_path, monkeypatch):
    honest = TrainingState._taken

    def rounded(state, turn, data):
        taken, packed, best = honest(state, turn, data)
        if state._organisation.name == "bank-01" and turn.number == 1:
            (name, first), *_ = taken.state[MODEL].items()
            model = {**taken.state[MODEL], name: np.nextafter(first, np.float32(np.inf))}
            taken = taken._replace(state={**taken.state, MODEL: model})
            packed = pack_standing(taken.standing, taken.state)
        return taken, packed, best

    monkeypatch.setattr(TrainingState, "_taken", rounded)
    with pytest.raises(RunError, match=r"bank-01 worked out another model .* resume = false"):
        played(tmp_path, settings, observer)


@pytest.mark.parametrize("left", [26, 33])
def test_a_partition_in_training_stops_the_run_and_the_next_one_goes_on(
    settings, observer, tmp_path, left
):
    settings = replace(settings, step_timeout=1.0)
    scene = Scene(tmp_path, settings)
    configs = folder_configs(scene.folders.values())

    def played(grid, number):
        made = grid(app, configs, settings.to_config(), run_id=number)
        made.left = left
        return run(made, settings, observer)

    whole = played(InProcessGrid, new_run_id())
    expected = kept_in(scene.store(scene.names[0]), whole["run_id"])
    with pytest.raises(RunError, match=r"no reply from bank-0[12]"):
        played(PartedGrid, new_run_id())
    organisations_in_memory.clear()
    again = played(InProcessGrid, new_run_id())
    for name in scene.names:
        assert same(kept_in(scene.store(name), again["run_id"]), expected)
