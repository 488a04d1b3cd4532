"""`fedlap predict`: from the run folder, wherever the stores of the run are."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.cli import main
from fedlap_app.graphs.folder import write_folder
from fedlap_app.graphs.without import without

SMALL = ["--rounds", "2", "--hidden", "8", "--vectors", "12", "--backend", "mask"]


def command(*words):
    result = CliRunner().invoke(main, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("where", ["", "stores"])
def test_the_basis_is_found_in_the_stores_of_the_run(tmp_path, where):
    fedlap.load("banks", clients=3, accounts=240).save(tmp_path / "orgs")
    stores = ["--store-dir", str(tmp_path / where)] if where else []
    report = command("train", "--data", str(tmp_path / "orgs"), *SMALL, *stores)
    (folder,) = report["run_folders"]
    bank = tmp_path / "orgs" / "bank-01"
    found = command("predict", str(bank), "--run", folder)
    run = fedlap.open_run(folder)
    assert found["accuracy_test"] == pytest.approx(run.scores.loc["bank-01", "test"])
    # Without the run folder it is the newest model in the organisation's store.
    assert command("predict", str(bank), *stores)["accuracy_test"] == found["accuracy_test"]
    with (bank / "predictions.csv").open() as file:
        rows = list(csv.DictReader(file))
    frame = run.predict("bank-01")
    assert [row["id"] for row in rows] == list(frame["id"])
    assert [row["predicted"] for row in rows] == list(frame["predicted"])
    for name in run.organisations[0].classes:
        shares = [float(row[f"p_{name}"]) for row in rows]
        assert shares == pytest.approx(list(frame[f"p_{name}"]), abs=1e-5)


def test_a_saved_run_has_the_basis_inside(tmp_path):
    orgs = fedlap.load("banks", clients=3, accounts=240)
    orgs.save(tmp_path / "orgs")
    run = fedlap.train(orgs, rounds=2, hidden="8", vectors=12, backend="mask")
    run.save(tmp_path / "run")
    found = command("predict", str(tmp_path / "orgs" / "bank-00"), "--run", str(tmp_path / "run"))
    assert found["accuracy_test"] == pytest.approx(run.scores.loc["bank-00", "test"])


def test_stores_that_have_moved_are_named(tmp_path):
    fedlap.load("banks", clients=3, accounts=240).save(tmp_path / "orgs")
    before, now = tmp_path / "before", tmp_path / "now"
    report = command("train", "--data", str(tmp_path / "orgs"), *SMALL, "--store-dir", str(before))
    before.rename(now)
    words = ["predict", str(tmp_path / "orgs" / "bank-01"), "--run", report["run_folders"][0]]
    assert CliRunner().invoke(main, words).exit_code == 2
    for place in (now, now / "bank-01"):
        assert command(*words, "--store-dir", str(place))["nodes"] > 0


def rows_of(folder):
    with (folder / "predictions.csv").open() as file:
        return {row["id"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("method", ["fedlap+", "fedlap", "fedavg"])
def test_nodes_that_came_later_are_predicted_and_counted(tmp_path, method):
    settings = ["--vectors", "12", "--backend", "mask"] if method == "fedlap+" else []
    words = ["--method", method, "--rounds", "2", "--hidden", "8", *settings]
    orgs = fedlap.load("banks", clients=3, accounts=240)
    gone = np.concatenate([part.ids[::12] for part in orgs])
    for part in orgs:
        write_folder(without(part, gone), tmp_path / part.name)
    command("train", "--data", str(tmp_path), *words)
    bank = tmp_path / "bank-01"
    command("predict", str(bank))
    before = rows_of(bank)
    write_folder(orgs["bank-01"], bank)
    found = command("predict", str(bank))
    after = rows_of(bank)
    assert list(after) == list(orgs["bank-01"].ids)
    came = len(after) - len(before)
    assert found["changes"]["nodes_added"] == came
    assert found["changes"]["nodes_removed"] == 0
    assert found["train_again"] == (found["changes"]["share"] > 0.1)
    kinds = {each: after[each]["basis"] for each in after}
    if method == "fedavg":
        assert set(kinds.values()) == {"none"}
    else:
        assert {kinds[each] for each in before} == {"computed"}
        assert {kinds[each] for each in after if each not in before} <= {"extended", "none"}
        assert found["basis"]["extended"] > 0.9 * came
    for row in after.values():
        shares = [float(row[f"p_{name}"]) for name in orgs["bank-01"].classes]
        assert sum(shares) == pytest.approx(1.0, abs=1e-5)
        assert max(shares) == float(row["probability"])
    write_folder(without(orgs["bank-01"], list(before)[:8]), bank)
    assert command("predict", str(bank))["changes"]["nodes_removed"] == 8


def test_a_failure_leaves_no_predictions_under_their_name(tmp_path):
    fedlap.load("banks", clients=2, accounts=240).save(tmp_path / "orgs")
    report = command("train", "--data", str(tmp_path / "orgs"), *SMALL)
    bank, model = tmp_path / "orgs" / "bank-00", Path(report["run_folders"][0]) / "model.npz"
    command("predict", str(bank), "--run", str(model.parent))
    content = model.read_bytes()
    for size in (0, 1, len(content) // 2, len(content) - 1):
        model.write_bytes(content[:size])
        result = CliRunner().invoke(main, ["predict", str(bank), "--run", str(model.parent)])
        assert result.exit_code == 2
        assert "not a whole model" in result.output
        assert not (bank / "predictions.csv").exists()
        assert (bank / "predictions.outdated.csv").exists()
    model.write_bytes(content)
    command("predict", str(bank), "--run", str(model.parent))
    assert not (bank / "predictions.outdated.csv").exists()


def test_other_data_with_the_same_names_does_not_stand_in_the_way(tmp_path):
    for name, accounts in (("first", 240), ("second", 300)):
        fedlap.load("banks", clients=2, accounts=accounts, seed=accounts).save(tmp_path / name)
        report = command("train", "--data", str(tmp_path / name), *SMALL)
        if name == "first":
            expected = fedlap.open_run(report["run_folders"][0])
    found = command("predict", str(tmp_path / "first" / "bank-01"))
    assert found["accuracy_test"] == pytest.approx(expected.scores.loc["bank-01", "test"])
