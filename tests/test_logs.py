import io
import json
import logging
from dataclasses import replace

import pytest
from flwr.app import RecordDict

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.flower.grids.in_process import make_grid
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.logs import FILE, FORM, LogFile, use_logs_as_asked
from fedlap_app.settings import Settings


@pytest.fixture
def loggers():
    """Loggers as they were, whatever a test does to them."""
    found = [logging.getLogger(name) for name in ("flwr", "fedlap")]
    before = [(each.handlers[:], each.propagate, each.level) for each in found]
    yield found
    for each, (handlers, propagate, level) in zip(found, before, strict=True):
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


def test_each_line_is_one_object_with_its_facts(loggers, monkeypatch):
    monkeypatch.setenv(FORM, "json")
    use_logs_as_asked()
    flower = loggers[0]
    flower.setLevel(logging.INFO)
    stream = io.StringIO()
    flower.handlers[0].setStream(stream)
    flower.info("[ROUND %s/%s] half\nway", 3, 6, extra={"facts": {"round": 3, "rounds": 6}})
    flower.info("   ")
    flower.debug("not shown")
    (line,) = stream.getvalue().splitlines()
    found = json.loads(line)
    assert found["message"] == "[ROUND 3/6] half\nway"
    assert (found["round"], found["rounds"], found["level"]) == (3, 6, "INFO")
    assert found["time"].endswith("+00:00")


def test_without_the_variable_flowers_lines_stay(loggers, monkeypatch):
    monkeypatch.delenv(FORM, raising=False)
    before = loggers[0].handlers[:]
    use_logs_as_asked()
    assert loggers[0].handlers == before


def test_an_unknown_form_is_refused(monkeypatch):
    monkeypatch.setenv(FORM, "xml")
    with pytest.raises(ConfigError, match="choose one of text, json"):
        use_logs_as_asked()


def test_a_file_gets_the_lines_as_well(loggers, monkeypatch, tmp_path):
    monkeypatch.setenv(FILE, str(tmp_path / "deep" / "client.log"))
    before = loggers[0].handlers[:]
    use_logs_as_asked()
    use_logs_as_asked()
    loggers[1].info("bank-a answered %s", "train")
    lines = (tmp_path / "deep" / "client.log").read_text().splitlines()
    assert [line.split(" ", 2)[2] for line in lines] == ["INFO bank-a answered train"]
    assert (tmp_path / "deep" / "client.log").stat().st_mode & 0o777 == 0o600
    assert loggers[0].handlers[: len(before)] == before


def test_a_file_that_cannot_be_written_stops_nothing(loggers, monkeypatch, tmp_path, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv(FILE, str(tmp_path / "file" / "client.log"))
    before = loggers[0].handlers[:]
    use_logs_as_asked()
    assert "name another file" in caplog.text
    assert loggers[0].handlers == before


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("file", ["a folder", "/dev/full"])
def test_what_cannot_be_a_file_is_told_once(
    loggers, monkeypatch, tmp_path, capsys, caplog, form, file
):
    place = str(tmp_path) if file == "a folder" else file
    monkeypatch.setattr("fedlap_app.logs._given_up", set())
    monkeypatch.setenv(FORM, form)
    monkeypatch.setenv(FILE, place)
    for _ in range(3):
        use_logs_as_asked()
        loggers[0].setLevel(logging.INFO)
        for logger in loggers:
            logger.info("a line")
    said = capsys.readouterr().err + caplog.text
    assert "Logging error" not in said
    assert said.count(f"{place} cannot be written") == 1
    assert not any(isinstance(each, LogFile) for logger in loggers for each in logger.handlers)


def test_a_client_logs_what_it_answered_and_refused(loggers, monkeypatch, tmp_path):
    monkeypatch.setenv(FORM, "json")
    monkeypatch.setenv(FILE, str(tmp_path / "client.log"))
    use_logs_as_asked()
    settings = replace(Settings(), method="fedavg", accounts=240, clients=2, rounds=1, hidden="8")
    grid = MemberGrid(make_grid(settings))
    members = gather(grid, settings)
    with pytest.raises(RunError):
        grid.ask(members[:1], "train", RecordDict(), 5.0)
    lines = [json.loads(line) for line in (tmp_path / "client.log").read_text().splitlines()]
    told = [line for line in lines if "request" in line]
    assert [(line["organisation"], line["request"], line["outcome"]) for line in told] == [
        ("bank-00", "query.join", "answered"),
        ("bank-01", "query.join", "answered"),
        ("bank-00", "train", "refused"),
    ]
    assert all(line["seconds"] >= 0 for line in told)
