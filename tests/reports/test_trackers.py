"""Scores of rounds arrive in TensorBoard and MLflow, once each and nothing else."""

import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.errors import ConfigError
from fedlap_app.reports.trackers import Tracking, tracking

ROW = {"stage": 0, "val_accuracy": 0.5, "val_loss": 0.25, "test_accuracy": None, "own": 7.0}


class Noted:
    def __init__(self, name, settings):
        self.name, self.settings, self.found, self.open = name, settings, [], True

    def add(self, name, value, step):
        self.found.append((name, value, step))

    def close(self):
        self.open = False


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "run-7"
    place.mkdir()
    (place / "config.json").write_text(json.dumps({"seed": 3, "data": "/secret/place"}))
    return place


def write(folder, *rows, end="\n"):
    lines = [json.dumps({"round": at, **row}) for at, row in enumerate(rows, 1)]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + end)


def test_every_round_is_handed_on_once_and_only_totals(folder):
    noted = []
    followed = Tracking(folder, lambda *about: noted.append(Noted(*about)) or noted[0])
    followed.look()
    write(folder, ROW)
    followed.look()
    write(folder, ROW, {**ROW, "val_accuracy": 0.75}, end='\n{"round": 3, "val_a')
    followed.look()  # the third is being written
    write(folder, ROW, {**ROW, "val_accuracy": 0.75})
    followed.close()
    expected = [("accuracy/val", 0.5, 1), ("loss/val", 0.25, 1)]
    expected += [("accuracy/val", 0.75, 2), ("loss/val", 0.25, 2)]
    assert noted[0].found == expected
    assert (noted[0].name, noted[0].settings, noted[0].open) == ("run-7", {"seed": 3}, False)


def test_a_missing_package_is_named(folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    for options in ({"tensorboard": folder / "logs"}, {"mlflow": "sqlite:///x.db"}):
        with pytest.raises(ConfigError, match="pip install"), tracking(folder, **options):
            pass


def test_tensorboard_shows_the_rounds_of_a_run(folder):
    pytest.importorskip("tensorboard", reason="pip install -e .[tensorboard]")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write(folder, ROW, {**ROW, "val_accuracy": 0.75})
    logs = folder.parent / "logs"
    (folder / "summary.json").write_text("{}")
    done = CliRunner().invoke(main, ["status", str(folder), "--tensorboard", str(logs)])
    assert done.exit_code == 0, done.output
    found = EventAccumulator(str(logs / "run-7")).Reload()
    assert sorted(found.Tags()["scalars"]) == ["accuracy/val", "loss/val"]
    scores = [(each.step, each.value) for each in found.Scalars("accuracy/val")]
    assert scores == [(1, 0.5), (2, 0.75)]


def test_mlflow_shows_the_rounds_of_a_run(folder):
    mlflow = pytest.importorskip("mlflow", reason="pip install -e .[mlflow]")
    write(folder, ROW, {**ROW, "val_accuracy": 0.75})
    address = f"sqlite:///{folder.parent}/mlflow.db"
    with tracking(folder, mlflow=address):
        pass
    client = mlflow.MlflowClient(address)
    experiment = client.get_experiment_by_name("fedlap")
    (run,) = client.search_runs([experiment.experiment_id])
    assert run.data.params == {"seed": "3"}
    scores = client.get_metric_history(run.info.run_id, "accuracy/val")
    assert [(each.step, each.value) for each in scores] == [(1, 0.5), (2, 0.75)]
