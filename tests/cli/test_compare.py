import csv
import json

from click.testing import CliRunner

import fedlap_app as fedlap
from fedlap_app.cli import main
from fedlap_app.graphs.folder import write_folder

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


def test_methods_are_tested_on_what_came_last(tmp_path):
    orgs = fedlap.load("banks", clients=3, accounts=240)
    for part in orgs:
        write_folder(part, tmp_path / part.name)
        path = tmp_path / part.name / "edges.csv"
        rows = list(csv.DictReader(path.open()))
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0], "time"])
            writer.writeheader()
            ends = [(int(row["source"][-4:]), int(row["target"][-4:])) for row in rows]
            writer.writerows({**row, "time": max(at)} for row, at in zip(rows, ends, strict=True))
    words = [*SMALL[4:], "--data", str(tmp_path), "--split", "time", "--last", "0.3", "--json"]
    words[words.index("--seeds") + 1] = "1"
    done = CliRunner().invoke(main, ["compare", *words, "--methods", "fedlap+,central"])
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout)
    assert report["dataset"] == str(tmp_path)
    assert all(30 < method["mean"] < 100 for method in report["methods"])
    refused = compare("--methods", "local", "--split", "time")
    assert refused.exit_code == 2
    assert "name organisation folders" in refused.stderr
