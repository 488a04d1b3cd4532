"""A member that claims a weight beside which what the others learned counts for nothing."""

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import MetricRecord, RecordDict

from client_app.app import app
from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs, new_run_id
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.replies import require_update
from fedlap_app.flower.server.run import run
from fedlap_app.methods.base import Method
from fedlap_app.methods.kept import training_job
from fedlap_app.methods.scores import Layout
from fedlap_app.models import model_file
from fedlap_app.models.model_file import ModelFile
from fedlap_app.store.folders import Store

from .scene import Scene

CLAIMED = 1e9


@pytest.fixture
def heavy(monkeypatch):
    """The first organisation says that it has a billion training nodes."""
    honest = Method.weight
    monkeypatch.setattr(
        Method,
        "weight",
        lambda self, org: CLAIMED if org.name == "bank-01" else honest(self, org),
    )


def models(small, root, **changed):
    """The models that all organisations keep of a run, and how the settings were."""
    settings = replace(
        small, training_backend="mask", spectral=False, standardise="alone", rounds=2,
        publish_scores=False,
        dropout=0.0,
        input_dropout=0.0, kept_round="last", **changed,
    )  # fmt: skip
    scene = Scene(root, settings)
    number = new_run_id()
    grid = InProcessGrid(app, folder_configs(scene.folders.values()), settings.to_config(),
                         run_id=number)  # fmt: skip
    run(grid, settings, Unwatched())
    found = {}
    for name in scene.names:
        content = Store(scene.store(name)).job(training_job(number)).read(model_file.FILE)
        kept = ModelFile.from_bytes(content, model_file.FILE).parameters
        found[name] = np.concatenate([np.ravel(kept[key]) for key in sorted(kept)])
    return found


def test_a_weight_above_the_agreed_one_stops_all_before_a_change_leaves(small, tmp_path, heavy):
    models(small, tmp_path / "open")  # no limit: it has its way
    with pytest.raises(RunError, match="above 3 times largest-weight = 200"):
        models(small, tmp_path / "limited", largest_weight=200)


def test_honest_members_pass_and_count_for_no_more_than_agreed(small, tmp_path):
    """With a largest weight of one all count alike."""
    free = models(small, tmp_path / "free")
    alike = models(small, tmp_path / "alike", largest_weight=1)
    wide = models(small, tmp_path / "wide", largest_weight=10**6)
    assert not np.array_equal(free["bank-01"], alike["bank-01"])
    assert np.array_equal(free["bank-01"], wide["bank-01"])


def test_the_server_refuses_it_where_training_is_plain():
    metrics = MetricRecord({"num-examples": 201})
    with pytest.raises(ProtocolError, match="above largest-weight = 200"):
        require_update(RecordDict({"metrics": metrics}), {}, Layout(2), 0, 200)
