"""`fedlap predict`: from the run folder, wherever the stores of the run are."""

import csv
import json

import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.cli import main

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
