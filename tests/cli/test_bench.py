import json

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
    assert [row["backend"] for row in report["rows"]] == ["bare", "textbook", "plain", "mask"]
    assert (tmp_path / "a.csv").read_text().count("\n") == 5
    assert "<svg" in (tmp_path / "a.svg").read_text()


def test_offline_shows_a_table_of_one_back_end():
    words = [*SMALL, "--vectors", "4", "--solver", "dcgs2", "--backend", "mask", "--repeats", "1"]
    text = bench("offline", *words)
    assert "dcgs2" in text
    assert "plain" not in text


def test_grid_compares_with_a_bare_loop():
    report = json.loads(bench("grid", *SMALL, "--rounds", "3", "--repeats", "1", "--json"))
    assert report["overhead_ms"] == report["grid_ms"] - report["bare_ms"]
