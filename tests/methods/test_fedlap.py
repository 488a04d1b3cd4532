"""FedLap with learned rows through the real protocol."""

import csv
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.base import MODEL, Schema
from fedlap_app.methods.fedlap import RECORD
from fedlap_app.methods.registry import method_class
from fedlap_app.models.rows import RowModel
from fedlap_app.models.specs import ROWS
from fedlap_app.settings import Settings
from fedlap_app.sums.job.row_keys import KEY_BYTES


class Silent:
    def step_done(self, number, steps):
        """Nothing to show."""

    def round_done(self, number, rounds, totals):
        """Nothing to show."""


@pytest.fixture
def settings():
    return replace(
        Settings(),
        method="fedlap",
        model="decoupled",
        accounts=240,
        clients=3,
        rounds=2,
        hidden="8",
    )


def method_of(settings):
    return method_class(settings.method).of(settings)


NAMES = {"one": b"a" * KEY_BYTES + b"b" * KEY_BYTES, "two": b"c" * KEY_BYTES + b"b" * KEY_BYTES}


NAMED = {"row-names": SimpleNamespace(job="job", told=NAMES)}


def test_the_model_of_the_server_has_no_rows(settings):
    method = method_of(settings)
    assert isinstance(method.model(Schema(12, 3), 0), RowModel)
    state = method.start(Schema(12, 3), 0, NAMED)
    assert ROWS not in state.model
    assert {name.split(".")[0] for name in state.model} >= {"features", "structure"}


def test_a_member_gets_its_own_rows_and_copies_are_averaged(settings):
    method = method_of(settings)
    state = method.start(Schema(12, 3), 0, NAMED)
    sent = {name: method.send(state, name) for name in NAMES}
    one, two = (sent[name][RECORD]["job"] for name in NAMES)
    assert one.shape == (2, settings.structure_width)
    np.testing.assert_array_equal(one[1], two[1])
    answers = {
        name: {MODEL: records[MODEL], RECORD: {"job": records[RECORD]["job"] + shift}}
        for (name, records), shift in zip(sent.items(), (1.0, 3.0), strict=True)
    }
    joined = method.join(state, state.model, answers)
    after = method.send(joined, "one")[RECORD]["job"]
    np.testing.assert_allclose(after[0], one[0] + 1.0, rtol=1e-6)
    np.testing.assert_allclose(after[1], one[1] + 2.0, rtol=1e-6)
    # The state before is as it was: it may be that of the best round.
    np.testing.assert_array_equal(method.send(state, "one")[RECORD]["job"], one)


def test_only_fedlap_reads_the_share(settings):
    part = load_federation(settings.data_spec)[0]
    averaging = method_of(replace(settings, method="fedavg"))
    assert averaging.inputs(part, {}).share is None
    method = method_of(settings)
    data = method.inputs(part, {})
    model = method.model(Schema(part.num_features, part.num_classes), 0, held=data.share.held)
    assert model(data).shape == (part.num_nodes, 3)
    assert np.isfinite(float(method.loss(model, data).detach()))


def test_the_structure_of_the_whole_graph_is_worth_five_points():
    settings = replace(Settings(), method="fedlap", accounts=800, clients=4, rounds=25, relay=False)
    together = run_in_process(settings, Silent())["accuracy"]["test"]
    average = run_in_process(replace(settings, method="fedavg"), Silent())["accuracy"]["test"]
    assert together >= average + 0.05


def test_predictions_are_made_from_the_own_rows(settings, tmp_path):
    orgs = tmp_path / "orgs"
    words = ["partition", "banks", "--accounts", "240", "--clients", "3", "--out", str(orgs)]
    assert CliRunner().invoke(main, words).exit_code == 0
    words = ["train", "--data", str(orgs), "--method", "fedlap", "--rounds", "2", "--json"]
    trained = CliRunner().invoke(main, words)
    assert trained.exit_code == 0, trained.output
    result = CliRunner().invoke(main, ["predict", str(orgs / "bank-01"), "--json"])
    assert result.exit_code == 0, result.output
    with (orgs / "bank-01" / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == json.loads(result.stdout)["nodes"]
    (folder,) = json.loads(trained.stdout)["run_folders"]
    refused = CliRunner().invoke(main, ["predict", str(orgs / "bank-01"), "--run", folder])
    assert refused.exit_code == 2
    assert "leave --run out" in refused.output
