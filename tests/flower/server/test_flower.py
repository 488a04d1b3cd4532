"""The same runs in Flower's own simulation: real processes, real results."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.flower.server.run_folder import RunFolder
from fedlap_app.flower.submission import LocalFlower, _processes_with
from fedlap_app.relevance import read_by
from fedlap_app.settings import Settings
from tests.flower.server.models import model_of, same

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.flower
SMALL = {
    "rounds": 3, "local-epochs": 2, "self-training": 0, "hidden": "16", "accounts": 400,
    "vectors": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def flower(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flower")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAP_HOME", str(folder / "fedlap"))
        patch.delenv("FEDLAP_DATA", raising=False)
        with LocalFlower(ROOT, folder / "flwr") as running:
            running.runs = folder / "fedlap" / "runs"
            yield running
        assert not _processes_with(str(running.log_file)), "the SuperLink is still there"


@pytest.mark.parametrize(
    ("method", "dataset"),
    [
        pytest.param("fedavg", "banks", marks=pytest.mark.slow),
        ("fedavg", "digits"),
        pytest.param("local", "banks", marks=pytest.mark.slow),
        pytest.param("local", "digits", marks=pytest.mark.slow),
        ("fedlap+", "banks"),
        pytest.param("fedlap", "banks", marks=pytest.mark.slow),
    ],
)
def test_flwr_run_and_fedlap_train_agree(flower, observer, dataset, method):
    wanted = {**SMALL, "dataset": dataset, "method": method, "backend": "mask"}
    if method == "fedlap":  # whose rows no sealed sum holds
        wanted["training-backend"] = "plain"
    config = {key: value for key, value in wanted.items() if key in read_by(method)}
    run_id = flower.submit(config, nodes=3)
    assert flower.wait(run_id, 300) == "finished:completed"
    simulated = RunFolder.find(run_id, flower.runs).read_json("summary.json")
    settings = replace(
        Settings(),
        clients=3,
        **{key.replace("-", "_"): value for key, value in config.items()},
    )
    here = run_in_process(settings, observer)
    if method != "local":  # whose models differ
        assert same(*map(model_of, (simulated, here)))
    for key in ("accuracy", "loss", "macro_f1"):
        for split, value in here[key].items():
            assert simulated[key][split] == pytest.approx(value, abs=1e-6), (key, split)
    assert simulated["client_accuracy"] == here["client_accuracy"]


def test_flwr_run_encrypts_sums_unless_told_otherwise(flower):
    run_id = flower.submit({**SMALL, "method": "fedlap+"}, nodes=3)
    assert flower.wait(run_id, 300) == "finished:completed"
    folder = RunFolder.find(run_id, flower.runs)
    assert folder.read_json("config.json")["backend"] == "ckks"
    price = folder.read_json("offline.json")
    # Three clients: 20 columns of two others' 134 rows, 54 bits a number, and small sums.
    assert min(price["up"].values()) > 20 * 2 * 134 * 54 / 8
    assert price["round_trips"] == 5


def test_a_failed_run_is_told(flower):
    run_id = flower.submit({"dataset": "cora", "rounds": 1}, nodes=2)
    assert flower.wait(run_id, 300) == "finished:failed"
    folder = RunFolder.find(run_id, flower.runs)
    reason = json.loads((folder.path / "error.json").read_text())["error"]
    assert "FEDLAP_DATA" in reason
