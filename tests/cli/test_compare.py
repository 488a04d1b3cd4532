import json

from click.testing import CliRunner

from fedlap_app.cli import main

SMALL = [
    "--accounts", "240", "--clients", "3", "--rounds", "2", "--self-training", "0", "--hidden", "8",
    "--vectors", "12", "--backend", "mask", "--seeds", "2",
]  # fmt: skip


def compare(*words):
    return CliRunner().invoke(main, ["compare", *SMALL, *words], catch_exceptions=False)


def test_a_table_and_files(tmp_path):
    chart, table = tmp_path / "a.svg", tmp_path / "a.csv"
    done = compare("--methods", "local,fedavg", "--plot", str(chart), "--csv", str(table))
    assert done.exit_code == 0, done.output
    assert "Joining with fedavg: " in done.stdout
    assert "95 % interval" in done.stdout
    assert "[RUN 4/4] fedavg, seed 1" in done.stderr
    assert chart.read_text().startswith("<?xml")
    assert table.read_text().startswith("dataset,")


def test_json_names_the_folder(own_home):
    report = json.loads(compare("--methods", "local", "--seed-start", "3", "--json").stdout)
    assert report["methods"][0]["seeds"] == [3, 4]
    assert report["folder"].startswith(str(own_home / "runs"))


def test_one_method_is_no_list():
    done = compare("--method", "local")
    assert done.exit_code == 2
    assert "--methods" in done.stderr
