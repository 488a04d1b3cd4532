"""The guide to the Python API: its examples run, its reference is that of the docstrings."""

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "python.md"


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


def test_the_reference_is_up_to_date():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = GUIDE.read_text(encoding="utf-8")
    assert text == module.updated(text), "run: python docs/reference.py"
    for name in ("train", "split", "Run.predict", "Organisations.save"):
        assert f"{name}(" in text
    with pytest.raises(ValueError, match="substring not found"):
        module.updated("a guide without a reference")
