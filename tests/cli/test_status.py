import json
import os
import socket
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.errors import RunError

SMALL = [
    "--accounts", "240", "--clients", "3", "--rounds", "2", "--self-training", "0", "--hidden", "8",
    "--vectors", "12",
]  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write(folder, **changes):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    now = datetime.now(UTC)
    status = {
        "run": 7,
        "state": "running",
        "reason": "",
        "phase": "offline",
        "progress": {"done": 4, "total": 13, "unit": "steps"},
        "started": (now - timedelta(hours=1)).isoformat(),
        "updated": now.isoformat(),
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "organisations": {
            "bank-a": {
                "last_seen": (now - timedelta(minutes=5)).isoformat(),
                "bytes_up": 2_500_000,
                "bytes_down": 1_000_000,
                "retries": 3,
            }
        },
    }
    (folder / "status.json").write_text(json.dumps({**status, **changes}))
    return folder


def test_a_finished_run_tells_what_every_organisation_sent(own_home):
    trained = run("train", *SMALL, "--json")
    (folder,) = json.loads(trained.stdout)["run_folders"]
    shown = run("status", "--json")
    assert shown.exit_code == 0
    found = json.loads(shown.output)
    assert found["run_folder"] == folder
    assert (found["state"], found["phase"]) == ("finished", "finished")
    assert found["training"] == "mask"
    assert "sealed (mask): the server sees no update" in run("status").output
    assert found["progress"] == {"done": 2, "total": 2, "unit": "rounds"}
    summary = json.loads((own_home / "runs" / folder / "summary.json").read_text())
    sent = {name: facts["bytes_up"] for name, facts in found["organisations"].items()}
    assert sent == summary["bytes_up"]
    assert {facts["retries"] for facts in found["organisations"].values()} == {0}


def test_phase_progress_and_organisations_are_shown(tmp_path):
    write(tmp_path / "x-7")
    shown = run("status", 7, "--run-dir", tmp_path)
    assert shown.exit_code == 0
    assert "Run 7: running, offline, 4 of 13 steps" in shown.output
    line = next(each for each in shown.output.splitlines() if "bank-a" in each)
    assert line.split() == ["bank-a", "5", "min", "ago", "2.50", "1.00", "3"]


def test_a_run_of_one_round_is_finished_once(tmp_path):
    folder = write(
        tmp_path / "x-7", state="finished", phase="finished",
        progress={"done": 1, "total": 1, "unit": "rounds"},
    )  # fmt: skip
    assert run("status", folder).output.startswith("Run 7: finished, 1 of 1 round\n")


def test_a_run_whose_process_is_gone_died(tmp_path):
    folder = write(tmp_path / "x-7", pid=2**22 + 1)
    shown = run("status", folder, "--json")
    assert shown.exit_code == 1
    assert json.loads(shown.output)["state"] == "died"
    assert "start the run again" in json.loads(shown.output)["reason"]


def test_a_process_on_another_machine_is_not_judged(tmp_path):
    folder = write(tmp_path / "x-7", pid=2**22 + 1, host="elsewhere")
    assert json.loads(run("status", folder, "--json").output)["state"] == "running"


def test_a_failed_run_shows_its_reason_and_exits_with_1(monkeypatch):
    def refuse(grid, settings):
        raise RunError("no reply from bank-a within 5 s")

    monkeypatch.setattr("fedlap_app.flower.server.run.gather", refuse)
    assert run("train", *SMALL).exit_code == 2
    shown = run("status")
    assert shown.exit_code == 1
    assert "failed, gathering" in shown.output
    assert "no reply from bank-a within 5 s" in shown.output


@pytest.mark.parametrize(
    ("file", "content", "state"),
    [
        ("summary.json", {"accuracy": {}}, "finished"),
        ("error.json", {"error": "no reply from bank-a"}, "failed"),
    ],
)
def test_a_run_without_a_status_is_told_from_its_files(tmp_path, file, content, state):
    folder = tmp_path / "20260101-banks-fedavg-9"
    folder.mkdir()
    (folder / file).write_text(json.dumps(content))
    found = json.loads(run("status", folder, "--json").output)
    assert found["state"] == state
    assert found["reason"] == content.get("error", "")


def test_an_unknown_run_is_one_sentence(tmp_path):
    shown = run("status", "12345", "--run-dir", tmp_path)
    assert shown.exit_code == 2
    assert shown.output.startswith("Error: there is no run '12345'")
    (tmp_path / "empty").mkdir()
    assert run("status", tmp_path / "empty").exit_code == 2


def test_a_damaged_status_is_one_sentence(tmp_path):
    folder = write(tmp_path / "x-7")
    (folder / "status.json").write_text("{")
    shown = run("status", folder)
    assert shown.exit_code == 2
    assert "cannot be read" in shown.output


@pytest.mark.parametrize("content", ["5", "{}", "[]", "null", '"x"', "[" * 100_000])
def test_a_status_of_another_shape_is_one_sentence(tmp_path, content):
    folder = write(tmp_path / "x-7")
    (folder / "status.json").write_text(content)
    assert_one_sentence_on(folder / "status.json")


@pytest.mark.parametrize(
    "changes",
    [
        {"updated": "yesterday"},
        {"updated": "2026-01-01T00:00:00"},
        {"updated": None},
        {"progress": None},
        {"progress": {"done": 1, "total": 2}},
        {"progress": {"done": 1, "total": "2", "unit": "steps"}},
        {"pid": None},
        {"pid": True},
        {"pid": 10**12},
        {"pid": -1},
        {"state": 5},
        {"organisations": []},
        {"organisations": {"a": {}}},
        {"organisations": {"a": 5}},
        {
            "organisations": {
                "a": {"last_seen": "soon", "bytes_up": 0, "bytes_down": 0, "retries": 0}
            }
        },
    ],
    ids=str,
)
def test_damaged_facts_are_one_sentence(tmp_path, changes):
    assert_one_sentence_on(write(tmp_path / "x-7", **changes) / "status.json")


def test_missing_facts_are_one_sentence(tmp_path):
    file = write(tmp_path / "x-7") / "status.json"
    facts = json.loads(file.read_text())
    del facts["progress"]
    file.write_text(json.dumps(facts))
    assert_one_sentence_on(file)


@pytest.mark.parametrize("content", ["[1]", "{}", "null", '{"error": 1}'])
def test_a_damaged_error_is_one_sentence(tmp_path, content):
    (tmp_path / "error.json").write_text(content)
    assert_one_sentence_on(tmp_path / "error.json")


def assert_one_sentence_on(file):
    for form in ([], ["--json"]):
        shown = run("status", file.parent, *form)
        assert shown.exit_code == 2, shown.output
        assert isinstance(shown.exception, SystemExit)
        assert shown.output.startswith(f"Error: {file} ")
        assert shown.output.count("\n") == 1


def test_a_finished_run_is_watched_to_its_end_at_once(own_home):
    assert run("train", *SMALL).exit_code == 0
    shown = run("status", "--watch")
    assert shown.exit_code == 0
    assert ": finished, 2 of 2 rounds" in shown.output
