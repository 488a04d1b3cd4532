import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.errors import RunError
from fedlap_app.flower.submission import Flower, RemoteFlower


def run(*arguments):
    return CliRunner().invoke(main, ["run", *arguments])


class Told:
    """Answers like the `flwr` of a SuperLink on which a run has ended, or fails to."""

    def __init__(self, *statuses):
        self.statuses, self.commands = list(statuses), []

    def __call__(self, flower, *arguments):
        self.commands.append(arguments)
        if arguments[0] == "run":
            return {"success": True, "run-id": "77"}
        if arguments[0] == "stop":
            return {"success": True}
        if not self.statuses:
            raise KeyboardInterrupt
        return {"success": True, "runs": [{"status": self.statuses.pop(0)}]}


@pytest.fixture
def told(monkeypatch):
    def answer(*statuses):
        found = Told(*statuses)
        monkeypatch.setattr(Flower, "_flwr", lambda *words: found(*words))
        monkeypatch.setattr("fedlap_app.flower.submission.time.sleep", lambda _: None)
        return found

    return answer


def test_a_run_on_a_superlink_elsewhere_is_waited_for(told, own_home, tmp_path):
    authority = tmp_path / "ca.crt"
    authority.write_text("certificate")
    flower = told("pending", "running", "finished:completed")
    done = run("--superlink", "h.example:8000", "--root-certificates", str(authority), "--json")
    assert done.exit_code == 0, done.output
    assert '"run": 77' in done.stdout
    assert flower.commands[0][:3] == ("run", ".", "fedlap")
    assert "--federation-config" not in flower.commands[0]
    config = (own_home / "flwr" / "config.toml").read_text()
    assert 'address = "h.example:8000"' in config
    assert f'root-certificates = "{authority}"' in config


def test_a_failed_run_exits_with_1_and_says_where_to_look(told, own_home):
    told("finished:failed")
    done = run("--superlink", "127.0.0.1:8000")
    assert done.exit_code == 1
    assert "flwr log RUN fedlap" in done.output
    assert "insecure = true" in (own_home / "flwr" / "config.toml").read_text()


def test_ctrl_c_stops_the_run(told, monkeypatch):
    flower = told("running")
    monkeypatch.setattr(
        RemoteFlower, "cancel", lambda self, run_id: flower.commands.append(("stop", run_id))
    )
    done = run("--superlink", "127.0.0.1:8000")
    assert done.exit_code == 130
    assert flower.commands[-1] == ("stop", 77)
    assert "Stopped." in done.output


def test_cancelling_waits_for_the_end_with_a_limit(told, tmp_path, monkeypatch):
    monkeypatch.setattr("fedlap_app.flower.submission._CANCEL_SECONDS", 0.0)
    flower = told("running")
    RemoteFlower(tmp_path, tmp_path / "home", "127.0.0.1:1").cancel(77)
    assert flower.commands == [("stop", "77", "fedlap", "--format", "json")]


def test_a_certificate_alone_is_refused(tmp_path):
    (tmp_path / "ca.crt").touch()
    done = run("--root-certificates", str(tmp_path / "ca.crt"))
    assert done.exit_code == 2
    assert "goes with --superlink" in done.output


def test_a_call_without_an_answer_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("fedlap_app.flower.submission._CALL_SECONDS", 0.01)
    monkeypatch.setattr("fedlap_app.flower.submission._SILENT_SECONDS", 0.0)
    flower = RemoteFlower(tmp_path, tmp_path / "home", "127.0.0.1:1")
    with pytest.raises(RunError, match="gave no answer within"):
        flower.wait(77, 5.0)


def test_a_superlink_that_is_away_for_a_while_ends_nothing(monkeypatch, tmp_path):
    answers = [
        {"success": True, "runs": [{"status": "running"}]},
        {"success": False, "error-message": "connection refused"},
        {"success": True, "runs": [{"status": "finished:completed"}]},
    ]
    monkeypatch.setattr(Flower, "_flwr", lambda *words: answers.pop(0))
    monkeypatch.setattr("fedlap_app.flower.submission.time.sleep", lambda _: None)
    flower = RemoteFlower(tmp_path, tmp_path / "home", "127.0.0.1:1")
    assert flower.wait(77, 60.0) == "finished:completed"


def refuse(monkeypatch, reason):
    said = f"Using SuperLink: fedlap (127.0.0.1:1)\n\n{reason}\n"
    answer = {"success": False, "error-message": said}
    monkeypatch.setattr(Flower, "_flwr", lambda *_: answer)


def test_no_connection_is_one_sentence_with_the_likely_causes(monkeypatch, own_home, tmp_path):
    from flwr.cli.utils import SUPERLINK_UNAVAILABLE_MESSAGE

    authority = tmp_path / "ca.crt"
    authority.write_text("certificate")
    refuse(monkeypatch, SUPERLINK_UNAVAILABLE_MESSAGE)
    done = run("--superlink", "127.0.0.1:1", "--root-certificates", str(authority))
    assert done.exit_code == 2
    (line,) = [each for each in done.output.splitlines() if not each.startswith("Submitting")]
    assert line.startswith("Error: there is no connection to the SuperLink 127.0.0.1:1: it cannot")
    assert f"its certificate was not signed by {authority}" in line
    assert "fedlap doctor" in line
    done = run("--superlink", "127.0.0.1:1")
    assert "--root-certificates is missing" in done.output
    assert "not signed" not in done.output


def test_other_reasons_of_flower_are_one_line(monkeypatch, own_home):
    refuse(monkeypatch, "Server error 501\nFor more information check: x")
    done = run("--superlink", "127.0.0.1:1")
    assert done.exit_code == 2
    assert done.output.splitlines()[1:] == [
        "Error: flwr run did not start: Server error 501 For more information check: x"
    ]


def test_the_summary_of_a_run_without_validation_nodes(told, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "runs" / "20261118-120000-banks-fedlap+-77"
    folder.mkdir(parents=True)
    summary = {
        "method": "fedlap+",
        "dataset": "banks",
        "clients": 3,
        "accuracy": {"val": None, "test": 0.5},
        "metric": "accuracy",
        "stages": [{}],
        "best_round": 4,
        "rounds": 4,
        "run_folder": str(folder),
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    told("finished:completed")
    done = run("--superlink", "127.0.0.1:8000", "--run-dir", "~/runs")
    assert done.exit_code == 0, done.output
    assert "val accuracy     none" in done.stdout
    assert "test accuracy    50.00 %" in done.stdout
