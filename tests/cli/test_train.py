import json
import statistics
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.models.model_file import ModelFile

SMALL = [
    "--accounts", "240", "--clients", "3", "--rounds", "2", "--self-training", "0", "--hidden", "8",
]  # fmt: skip
BASIS = ["--vectors", "12"]


def train(*words):
    result = CliRunner().invoke(main, ["train", *SMALL, *words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("method", ["fedlap+", "fedavg", "local", "central"])
def test_one_json_object_over_the_seeds(method):
    basis = BASIS if method == "fedlap+" else []
    report = train("--method", method, *basis, "--seeds", "3", "--seed-start", "5")
    assert report["seeds"] == [5, 6, 7]
    tests = [
        100 * json.loads((Path(folder) / "summary.json").read_text())["accuracy"]["test"]
        for folder in report["run_folders"]
    ]
    assert report["accuracy_mean"] == pytest.approx(statistics.mean(tests))
    assert report["accuracy_std"] == pytest.approx(statistics.stdev(tests))
    # Student's quantile with two degrees of freedom, from a printed table.
    half = 4.3027 * statistics.stdev(tests) / 3**0.5
    assert report["accuracy_low"] == pytest.approx(statistics.mean(tests) - half, abs=0.01)
    assert report["accuracy_high"] == pytest.approx(statistics.mean(tests) + half, abs=0.01)
    assert report["rounds"] == 2
    assert report["seconds"] > 0
    assert (report["bytes_up_per_client"] == 0) == (method == "central")


def test_options_override_the_preset(tmp_path):
    preset = tmp_path / "preset.toml"
    preset.write_text("rounds = 7\nlocal-epochs = 1\n")
    assert train(*BASIS, "--conf", str(preset))["rounds"] == 2


def test_the_bytes_are_those_of_the_model_and_the_scores():
    plain = ["--training-backend", "plain", "--standardise", "none"]
    report = train("--method", "fedavg", *plain)
    folder = Path(report["run_folders"][0])
    summary = json.loads((folder / "summary.json").read_text())
    model = ModelFile.from_bytes((folder / "model.npz").read_bytes(), "model.npz")
    size = sum(value.nbytes for value in model.parameters.values())
    # Two rounds carry the model up; the rest are headers and numbers.
    assert 2 * size < max(summary["bytes_up"].values()) < 2 * size + 4000


def test_text_names_the_organisations_and_the_folder():
    result = CliRunner().invoke(main, ["train", *SMALL, *BASIS])
    assert result.exit_code == 0
    assert "bank-00" in result.output
    assert "run folder" in result.output
    assert "one seed: its random variation is not known" in result.output


def test_text_over_seeds_has_an_interval():
    result = CliRunner().invoke(main, ["train", *SMALL, "--method", "fedavg", "--seeds", "2"])
    assert "95 % interval over 2 seeds, deviation" in result.output
    assert "one seed" not in result.output


def test_without_test_nodes_the_json_is_still_json():
    ratios = ["--train-ratio", "1", "--val-ratio", "0", "--test-ratio", "0"]
    report = train("--method", "fedavg", *ratios)
    assert report["accuracy_mean"] is None
    assert report["accuracies"] == []
    result = CliRunner().invoke(main, ["train", *SMALL, "--method", "local", *ratios])
    assert "no test nodes" in result.output


def test_folders_that_do_not_fit_are_told_before_training(tmp_path):
    orgs = tmp_path / "orgs"
    CliRunner().invoke(main, ["partition", "banks", "--accounts", "240", "--out", str(orgs)])
    table = orgs / "bank-00" / "edges.csv"
    rows = table.read_text().splitlines()
    shared = next(row for row in rows[1:] if ",bank-" in row)
    table.write_text("\n".join(row for row in rows if row != shared) + "\n")
    words = ["train", "--data", str(orgs), "--method", "fedavg", "--rounds", "1"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0
    assert "Warning: " in result.output
    (orgs / "bank-01" / "nodes.csv").write_text("id,label\n")
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "bank-01" in result.output


def test_own_folders_and_a_benchmark_exclude_each_other(tmp_path):
    result = CliRunner().invoke(main, ["train", "--data", str(tmp_path), "--dataset", "cora"])
    assert result.exit_code != 0
    assert "--data takes the place of --dataset" in result.output


def test_the_worst_case_attacker_is_told_before_the_first_product():
    words = ["train", *SMALL, "--json"]
    told = CliRunner().invoke(main, [*words, *BASIS, "--method", "fedlap+"], catch_exceptions=False)
    first = told.stderr.splitlines()[0]
    assert first.startswith("Privacy: the paper's worst-case attacker")
    report = CliRunner().invoke(main, ["audit", *SMALL[:4], "--vectors", "12", "--json"])
    assert f"AUC {json.loads(report.stdout)['auc']:.3f}" in first
    silent = CliRunner().invoke(main, [*words, "--method", "fedavg"], catch_exceptions=False)
    assert silent.exit_code == 0
    assert "Privacy" not in silent.stderr


def test_two_organisations_are_told_what_they_learn_of_each_other():
    two = CliRunner().invoke(main, ["train", *SMALL, *BASIS, "--clients", "2"])
    assert two.stderr.count("each learns the other's numbers exactly") == 1
    three = CliRunner().invoke(main, ["train", *SMALL, *BASIS])
    assert "the other's numbers" not in three.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--model", "decoupled", "--hidden", "8192,8192"], "there is not enough memory"),
        (["--structure-hidden", "-3"], "structure-hidden = '-3' is not a list"),
        (["--smoothing", "1e308"], "or the strength of the regulariser"),
        (["--store-dir", __file__], f"store-dir = '{__file__}' cannot be a folder"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words, sentence, monkeypatch):
    if "memory" in sentence:
        _no_memory(monkeypatch)
    result = CliRunner().invoke(main, ["train", *SMALL, *BASIS, *words], catch_exceptions=False)
    assert result.exit_code == 2
    assert sentence in result.stderr.splitlines()[-1]


def _no_memory(monkeypatch):
    """As torch says it; a machine with much memory would really take it."""
    from fedlap_app.models import networks as models

    def full(spec):
        raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(models, "FeatureModel", full)
