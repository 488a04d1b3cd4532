"""The guide to the Python API: its examples run, its reference is that of the docstrings."""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from fedlap_app.knobs import Options, knob
from fedlap_app.settings import KNOBS

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "python.md"


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


def test_every_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in blocks(GUIDE):
        exec(compile(code, str(GUIDE), "exec"), names)
    assert names["run"].settings.seed == 3
    assert names["again"].accuracy["test"] > 0.5
    assert names["banks"].names == ("north", "south")
    assert isinstance(names["again"].history, pd.DataFrame)
    said = capsys.readouterr().out
    assert said == "unknown setting 'vector': the nearest valid one is 'vectors'\n"


def test_the_example_of_the_readme_runs(fedlap_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = blocks(ROOT / "README.md")
    assert len([line for line in code.splitlines() if line]) == 6
    names = {}
    exec(code.replace("rounds=60", "rounds=2").replace("vectors=100", "vectors=10"), names)
    assert set(names["run"].accuracy) == {"train", "val", "test"}


def test_the_reference_is_up_to_date(module):
    text = GUIDE.read_text(encoding="utf-8")
    assert text == module.updated(text), "run: python docs/reference.py"
    for name in ("train", "split", "Run.predict", "Organisations.save"):
        assert f"{name}(" in text
    with pytest.raises(ValueError, match="substring not found"):
        module.updated("a guide without a reference")


def test_what_is_generated_is_current(module, tmp_path, monkeypatch):
    assert module.stale(write=False) == []
    other = tmp_path / "settings.md"
    other.write_text("old")
    monkeypatch.setattr(module, "SETTINGS", other)
    assert module.stale(write=False) == [other]
    assert other.read_text() == "old"
    assert module.stale(write=True) == [other]
    assert module.stale(write=False) == []


def test_every_knob_is_in_each_list_once(module):
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    for key in KNOBS:
        assert len(re.findall(rf"^{key} = ", project, re.MULTILINE)) == 1
        assert page.count(f"\n| `{key}` | ") == 1
    for depends in ("clients", "device", "profile", "store-dir"):
        assert f"\n`{depends}`: " in page


def test_a_new_knob_needs_its_own_line_only(module, monkeypatch):
    @dataclass(frozen=True)
    class Weather(Options):
        """What it is like outside."""

        title = "Weather"
        rain: int = knob(3, "millimetres of rain", low=0)

    monkeypatch.setattr(module, "GROUPS", [*module.GROUPS, Weather])
    assert "\n# millimetres of rain\nrain = 3\n" in module.table()
    assert "| `rain` | `3` | whole number from 0 | millimetres of rain" in module.settings_page()
