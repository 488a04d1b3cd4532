"""FedLap with learned rows through the real protocol."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.fedlap_plus import method_model, method_objective
from fedlap_app.methods.fedlap_rows import with_share, without_rows
from fedlap_app.models.rows import RowModel
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.settings import Settings


class Silent:
    def step_done(self, number, steps):
        """Nothing to show."""

    def round_done(self, number, rounds, totals):
        """Nothing to show."""


@pytest.fixture
def settings():
    return replace(Settings(), method="fedlap", accounts=240, clients=3, rounds=2, hidden="8")


def test_the_model_of_the_server_has_no_rows(settings):
    model = method_model(settings, 12, 3)
    assert isinstance(model, RowModel)
    assert model.rows.shape == (0, settings.structure_width)
    names = without_rows(dict(model.named_parameters()))
    assert "rows" not in names
    assert {name.split(".")[0] for name in names} == {"features", "structure"}


def test_only_fedlap_reads_the_share(settings):
    part = load_federation(settings.data_spec)[0]
    spec = settings.model_spec(part.num_features, part.num_classes)
    tensors = GraphTensors.from_subgraph(part, spec)
    assert with_share(tensors, part, replace(settings, method="fedavg")) is tensors
    data = with_share(tensors, part, settings)
    model = method_model(settings, 12, 3, held=data.share.held)
    assert model(data).shape == (part.num_nodes, 3)
    assert np.isfinite(float(method_objective(settings)(model, data).detach()))


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
