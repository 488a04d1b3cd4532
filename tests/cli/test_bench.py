import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = ["--dataset", "banks", "--accounts", "240", "--clients", "3"]


def bench(*words):
    result = CliRunner().invoke(main, ["bench", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_offline_writes_all_forms(tmp_path):
    files = ["--csv", str(tmp_path / "a.csv"), "--plot", str(tmp_path / "a.svg")]
    words = [*SMALL, "--partition", "auto", "--vectors", "6", "--solver", "block-lanczos"]
    report = json.loads(bench("offline", *words, "--repeats", "1", "--json", *files))
    names = ["plain", "mask", "ckks", "ckks-4096", "tenseal-default", "paper"]
    assert [row["backend"] for row in report["rows"]] == ["bare", "textbook", *names]
    assert (tmp_path / "a.csv").read_text().count("\n") == 9
    profiles = [row["profile"] for row in report["rows"]]
    assert profiles[4:] == ["ckks-2048", "ckks-4096", "tenseal-default", "tenseal-default"]
    for row in report["rows"][2:-1]:
        parts = row["seconds_clients"] + row["seconds_server"]
        assert parts == pytest.approx(row["seconds"], rel=0.05)
        assert row["seconds_sealing"] + row["seconds_opening"] < row["seconds_clients"]
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_offline_shows_a_table_of_one_back_end():
    words = [*SMALL, "--vectors", "4", "--solver", "dcgs2", "--backend", "mask", "--repeats", "1"]
    text = bench("offline", *words)
    assert "dcgs2" in text
    assert "plain" not in text


def test_offline_compares_one_profile_with_plain_sums():
    words = [*SMALL, "--vectors", "4", "--solver", "block-lanczos", "--repeats", "1", "--no-paper"]
    report = json.loads(bench("offline", *words, "--profile", "tenseal-default", "--json"))
    assert [row["backend"] for row in report["rows"][2:]] == ["plain", "tenseal-default"]
    plain, sealed = report["rows"][2:]
    assert sealed["bytes_up_per_client"] > 10 * plain["bytes_up_per_client"]


def test_grid_compares_with_a_bare_loop():
    report = json.loads(bench("grid", *SMALL, "--rounds", "3", "--repeats", "1", "--json"))
    assert report["overhead_ms"] == report["grid_ms"] - report["bare_ms"]


def test_training_is_compared_with_and_without_seals():
    words = [*SMALL, "--method", "fedavg", "--rounds", "2", "--repeats", "1", "--json"]
    report = json.loads(bench("training", *words))
    for what in ("bytes", "ms", "cpu_ms"):
        for cover in ("mask", "ckks"):
            ratio = report[cover][what] / report["plain"][what]
            assert report[cover][f"{what}_ratio"] == pytest.approx(ratio)
    assert min(report["mask"]["parts_ms"].values()) > 0


TINY = [*SMALL, "--rounds", "2", "--local-epochs", "1", "--hidden", "8", "--structure-width", "8"]


def test_frontier_writes_all_forms(tmp_path):
    files = ["--csv", str(tmp_path / "a.csv"), "--plot", str(tmp_path / "a.svg")]
    lists = ["--grid-vectors", "4,12", "--grid-operator", "sym,regularised", "--grid-block", "4"]
    words = [*TINY, *lists, "--bound", "4", "--seeds", "2", "--seed-start", "7"]
    report = json.loads(bench("frontier", *words, "--json", *files))
    found = [(row["operator"], row["exchanged"], row["inside"]) for row in report["rows"]]
    assert found == [
        ("sym", 4, True), ("sym", 12, False), ("regularised", 4, True), ("regularised", 12, False),
    ]  # fmt: skip
    best = max(report["rows"], key=lambda row: row["validation_mean"])
    assert report["best"]["validation_mean"] == best["validation_mean"]
    assert report["best_under_bound"]["exchanged"] == 4
    assert (report["seeds"], report["seed_start"]) == (2, 7)
    assert (tmp_path / "a.csv").read_text().count("\n") == 5
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_frontier_shows_a_table_and_takes_settings_for_axes_without_a_list():
    text = bench("frontier", *TINY, "--vectors", "6", "--rank", "5", "--block", "2")
    assert "highest validation accuracy" in text
    row = next(line for line in text.splitlines() if line.startswith("regularised"))
    assert row.split()[1:5] == ["smallest", "6", "5", "2"]


def test_frontier_tells_bad_input_in_one_sentence_before_any_work(tmp_path):
    for words in (
        ["--grid-vectors", "3,x"],
        ["--plot", str(tmp_path / "a.doc")],
        ["--csv", str(tmp_path / "none" / "a.csv")],
        ["--method", "local"],
    ):
        result = CliRunner().invoke(main, ["bench", "frontier", *TINY, *words])
        assert result.exit_code == 2
        assert result.output.startswith("Error: ")
        assert result.output.count("\n") == 1


def test_arrivals_are_judged_beside_a_model_that_had_them():
    words = ["--rounds", "2", "--hidden", "8", "--vectors", "12", "--backend", "mask"]
    report = json.loads(bench("arrivals", *SMALL, *words, "--seeds", "1", "--json"))
    (row,) = report["rows"]
    assert row["extended"] > 90
    assert row["nodes"] < 30
    assert abs(row["after"] - row["before"]) < 5
    assert report["mean"]["new"]["new_mean"] == row["new"]


def test_a_warm_start_takes_half_the_vectors():
    words = ["--rounds", "2", "--hidden", "8", "--vectors", "24", "--block", "4"]
    words += ["--self-training", "0", "--backend", "mask", "--shares", "5", "--seeds", "1"]
    report = json.loads(bench("update", *SMALL, *words, "--json"))
    cold, warm, kept = report["rows"]
    assert [each["vectors"] for each in report["rows"]] == [24, 12, 0]
    assert cold["trips"] > warm["trips"] > kept["trips"] == 0
    assert warm["megabytes"] < cold["megabytes"]
    assert kept["at_once"] > 50
