import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import read_federation


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def parts(tmp_path):
    out = tmp_path / "parts"
    result = run("partition", "banks", "--clients", 3, "--accounts", 200, "--out", out)
    assert result.exit_code == 0, result.output
    return out


def test_the_list_of_data_sets():
    shown = run("datasets")
    assert shown.exit_code == 0
    assert "cora" in shown.output
    rows = json.loads(run("datasets", "--json").output)
    assert [row["name"] for row in rows][:2] == ["banks", "digits"]
    assert {row["name"]: row["nodes"] for row in rows}["cora"] == 2708


def test_partition_writes_what_the_federation_is(parts):
    expected = load_federation(DataSpec(accounts=200, clients=3))
    assert [p.fingerprint() for p in read_federation(parts)] == [p.fingerprint() for p in expected]


def test_partition_as_parquet_with_direction(tmp_path):
    options = ("--accounts", 200, "--directed", "--format", "parquet", "--json", "--seed", 3)
    result = run("partition", "banks", "--clients", 2, "--out", tmp_path / "out", *options)
    report = json.loads(result.output)
    assert [row["name"] for row in report["organisations"]] == ["bank-00", "bank-01"]
    assert sum(row["nodes"] for row in report["organisations"]) == 200
    assert (tmp_path / "out" / "bank-00" / "edges.parquet").is_file()
    assert run("check", "--directed", tmp_path / "out").exit_code == 0


def test_partition_overwrites_only_by_force(parts):
    (parts / "notes.txt").write_text("mine")
    again = ("partition", "banks", "--clients", 2, "--accounts", 200, "--out", parts)
    refused = run(*again)
    assert refused.exit_code == 2
    assert "not empty" in refused.output
    assert run(*again, "--force").exit_code == 0
    assert sorted(path.name for path in parts.iterdir()) == ["bank-00", "bank-01", "notes.txt"]


def test_check_says_one_line_an_organisation(parts):
    result = run("check", parts)
    assert result.exit_code == 0
    assert [line.split(":")[0] for line in result.output.splitlines()][:3] == [
        "bank-00",
        "bank-01",
        "bank-02",
    ]


def test_check_of_one_organisation_alone(parts):
    assert run("check", parts / "bank-01").exit_code == 0


def test_check_of_several_named_organisations(parts):
    result = run("check", parts / "bank-00", parts / "bank-01")
    assert result.exit_code == 2
    assert result.output.count("Problem: ") == 2
    assert "'bank-02'" in result.output


def test_check_finds_a_missing_edge(parts):
    edges = parts / "bank-00" / "edges.csv"
    lines = edges.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if "bank-01" in line)
    edges.write_text("\n".join(lines[:at] + lines[at + 1 :]) + "\n")
    result = run("check", "--json", parts)
    assert result.exit_code == 2
    report = json.loads(result.output)
    assert report["ok"] is False
    assert len(report["organisations"]) == 3
    (problem,) = report["problems"]
    assert "'bank-01' lists 1 edge with 'bank-00'" in problem


def test_check_goes_on_after_an_unreadable_folder(parts):
    (parts / "bank-00" / "nodes.csv").write_text("")
    (parts / "bank-02" / "edges.csv").unlink()
    result = run("check", parts)
    assert result.exit_code == 2
    assert result.output.count("Problem: ") == 2
    assert "bank-01: " in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("partition", "coral", "--out", "x"), "did you mean 'cora'"),
        (("partition", "digits", "--partition", "owner", "--out", "x"), "no natural owners"),
        (("partition", "banks", "--clients", "0", "--out", "x"), "whole number from 1"),
        (("check", "nowhere"), "There is no folder nowhere"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert len(result.output.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["datasets", "partition", "check"])
def test_help_shows_an_example(command):
    assert f"Example: fedlap {command}" in run(command, "--help").output
