import io
import json
import logging

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.json_logs import VARIABLE, use_json_logs_if_asked


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
    monkeypatch.setenv(VARIABLE, "json")
    use_json_logs_if_asked()
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
    monkeypatch.delenv(VARIABLE, raising=False)
    before = loggers[0].handlers[:]
    use_json_logs_if_asked()
    assert loggers[0].handlers == before


def test_an_unknown_form_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "xml")
    with pytest.raises(ConfigError, match="choose one of text, json"):
        use_json_logs_if_asked()
