"""The federation that was made by hand in examples/ is what its page and docs/own-data.md say."""

import csv
import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.graphs.folder import read_federation

EXAMPLE = Path(__file__).parents[2] / "examples" / "three_folders"
NAMES = ("carrier-east", "carrier-north", "carrier-west")
SMALL = "--rounds 3 --self-training 0 --vectors 8 --backend mask --json"


@pytest.fixture
def orgs(tmp_path):
    return shutil.copytree(EXAMPLE, tmp_path / "orgs")


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_both_sides_list_an_edge_between_two_with_one_weight():
    foreign = {}
    for name in NAMES:
        with (EXAMPLE / name / "edges.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["owner"]:
                    ends = frozenset([(row["source"], name), (row["target"], row["owner"])])
                    foreign.setdefault(ends, []).append((name, row["weight"]))
    assert len(foreign) > 50
    for ends, listed in foreign.items():
        assert {name for name, _ in listed} == {owner for _, owner in ends}
        assert len(listed) == 2
        assert len({weight for _, weight in listed}) == 1


def test_the_page_names_lines_that_are_there():
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    numbers = {part.name: part.num_nodes for part in read_federation(EXAMPLE)}
    found = re.findall(r"^(carrier-\w+)/ +(\d+) numbers", text, re.MULTILINE)
    assert {name: int(count) for name, count in found} == numbers
    lines = re.findall(r"`(carrier-\w+)/edges\.csv` has\s+`([^`]+)`", text)
    assert len(lines) == 2
    for name, line in lines:
        assert line in (EXAMPLE / name / "edges.csv").read_text().splitlines()


def test_check_names_an_edge_that_one_carrier_forgot(orgs):
    assert run("check", orgs).exit_code == 0
    file = orgs / "carrier-west" / "edges.csv"
    file.write_text(file.read_text().replace("W08,E01,carrier-east,4\n", ""))
    forgot = run("check", orgs)
    assert forgot.exit_code == 2
    assert "from 'E01' to 'W08': an edge between two is listed by both" in forgot.output


def test_it_trains_and_predicts_every_number(orgs):
    trained = run("train", "--data", orgs, *SMALL.split())
    assert trained.exit_code == 0, trained.output
    assert json.loads(trained.stdout)["rounds"] == 3
    for name in NAMES:
        predicted = run("predict", orgs / name)
        assert predicted.exit_code == 0, predicted.output
        with (orgs / name / "predictions.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        with (orgs / name / "nodes.csv").open(encoding="utf-8") as file:
            assert [row["id"] for row in rows] == [row["id"] for row in csv.DictReader(file)]
        assert {row["predicted"] for row in rows} <= {"person", "spam"}
        assert all(abs(float(r["p_person"]) + float(r["p_spam"]) - 1) < 1e-4 for r in rows)
