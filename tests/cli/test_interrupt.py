"""Ctrl-C in a real process: one sentence, exit code 130, nothing lost."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.flower.server import run, summary

FEDLAP = Path(sys.executable).parent / "fedlap"
SMALL = ["--accounts", "240", "--clients", "3", "--hidden", "8", "--vectors", "12"]


def interrupted(number, home, *words, until):
    """Start a command, send it a signal once `until` holds, and give what it wrote."""
    process = subprocess.Popen(
        [FEDLAP, "train", *SMALL, *words],
        env={**os.environ, "FEDLAP_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell may have told its background jobs to ignore SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        deadline = time.monotonic() + 120
        while not until() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, out, err


def rounds(home):
    return sum(len(file.read_text().splitlines()) for file in home.glob("runs/*/metrics.jsonl"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_training_stops_with_one_sentence(tmp_path, number):
    code, _, err = interrupted(
        number, tmp_path, "--rounds", "100000", until=lambda: rounds(tmp_path) > 2
    )
    assert code == 130
    assert "Traceback" not in err
    assert "Stopped." in err
    (status,) = tmp_path.glob("runs/*/status.json")
    assert json.loads(status.read_text())["state"] == "stopped"
    assert list(tmp_path.glob("stores/*/basis-*")), "the finished basis is kept"


def test_seeds_that_were_finished_are_reported(tmp_path):
    def two_runs():
        return len(list(tmp_path.glob("runs/*/summary.json"))) >= 2

    code, out, _ = interrupted(
        signal.SIGINT, tmp_path, "--rounds", "20", "--seeds", "500", "--json", until=two_runs
    )
    assert code == 130
    report = json.loads(out)
    finished = len(list(tmp_path.glob("runs/*/summary.json")))
    assert report["seeds"] == list(range(finished))
    assert len(report["accuracies"]) == finished


@pytest.fixture
def late(monkeypatch):
    """Ctrl-C just after the last file of the second run; gives the summaries."""
    calls = []

    def write_summary(*words, **facts):
        found = summary.write_summary(*words, **facts)
        calls.append(found)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(run, "write_summary", write_summary)
    return calls


def test_a_seed_counts_once_its_summary_is_written(late, own_home):
    done = CliRunner().invoke(main, ["train", *SMALL, "--rounds", "2", "--seeds", "5", "--json"])
    assert done.exit_code == 130
    report = json.loads(done.stdout)
    assert report["seeds"] == [0, 1]
    assert report["accuracies"] == [100 * found["accuracy"]["test"] for found in late]
    for folder in map(Path, report["run_folders"]):
        assert json.loads((folder / "status.json").read_text())["state"] == "finished"
        assert not (folder / "error.json").exists()
