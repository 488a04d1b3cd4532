"""Many organisations: eight real SuperNodes, and fifty in one simulation."""

from pathlib import Path

import pytest

from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.flower.submission import LocalFlower
from fedlap_app.graphs.federation import DataSpec
from tests.integration.federation import ROOT, Federation

pytestmark = pytest.mark.integration
SHORT = {
    "rounds": 1, "local-epochs": 1, "self-training": 0, "hidden": "16", "structure-width": 16,
    "vectors": 10,
}  # fmt: skip


def test_eight_supernodes(tmp_path):
    spec = DataSpec(dataset="banks", clients=8, accounts=800)
    with Federation(tmp_path, spec) as federation:
        summary = federation.run(SHORT, timeout=900).summary
    assert summary["clients"] == 8
    assert all(count > 0 for count in summary["bytes_up"].values())


def test_fifty_simulated_organisations(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLAP_HOME", str(tmp_path / "fedlap"))
    config = {**SHORT, "dataset": "banks", "accounts": 3000}
    with LocalFlower(ROOT, tmp_path / "flwr") as flower:
        run_id = flower.submit(config, nodes=50)
        assert flower.wait(run_id, 600) == "finished:completed"
    folder = RunFolder.find(run_id, Path(tmp_path / "fedlap" / "runs"))
    assert folder is not None
    summary = folder.read_json("summary.json")
    assert summary["clients"] == 50
    assert len(summary["client_accuracy"]) == 50
