"""Settings on the command line: their types, their help, and what the method ignores."""

import json
import re

import click
import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.knobs import domain_of
from fedlap_app.methods.registry import BUILT_IN
from fedlap_app.relevance import title_of
from fedlap_app.settings import GROUPS, KNOBS
from tests.golden.matrix import commands

QUICK = ["--accounts", "240", "--clients", "2", "--rounds", "1", "--self-training", "0"]
TAKE_ALL = [name for name, command in commands().items() if "--vectors" in str(command.params)
            or any(each.name == "vectors" for each in command.params)]  # fmt: skip


def fedlap(*words):
    return CliRunner().invoke(main, words, catch_exceptions=False)


@pytest.mark.parametrize("name", TAKE_ALL)
def test_every_knob_is_an_option_once(name):
    options = [option for each in commands()[name].params for option in each.opts]
    assert [options.count(f"--{key}") for key in KNOBS] == [1] * len(KNOBS)


def test_options_have_types():
    types = {each.name: each.type for each in commands()["command fedlap train"].params}
    for key, entry in KNOBS.items():
        domain, found = domain_of(entry), types[entry.name]
        if domain.choices:
            assert isinstance(found, click.Choice)
            assert tuple(found.choices) == domain.choices, key
        elif isinstance(entry.default, bool):
            assert isinstance(found, click.types.BoolParamType)
        elif isinstance(entry.default, int | float):
            assert isinstance(found, click.FloatRange if isinstance(entry.default, float)
                              else click.IntRange)  # fmt: skip
            assert (found.min, found.max) == (domain.low, domain.high)


def sections(text):
    """Titles of a help text, and the options below each."""
    pieces = re.split(r"^(\S.*):$", text, flags=re.MULTILINE)
    return {
        title: re.findall(r"^  --([a-z-]+)", body, re.MULTILINE)
        for title, body in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def test_the_help_is_grouped_and_short():
    shown = sections(fedlap("train", "--help").stdout)
    everything = sections(fedlap("train", "--help-all").stdout)
    assert next(iter(shown)) == "Options"
    assert list(everything)[1:] == [title_of(group) for group in GROUPS]
    listed = [key for title, keys in everything.items() if title != "Options" for key in keys]
    assert sorted(listed) == sorted(KNOBS)
    usual = [key for title, keys in shown.items() if title != "Options" for key in keys]
    assert usual == [key for key, entry in KNOBS.items() if not domain_of(entry).advanced]
    assert len(usual) < len(KNOBS) * 0.6
    assert "Structure model g (fedlap+, fedlap, fedstruct)" in shown
    assert "--help-all shows" in fedlap("train", "-h").stdout
    assert "--method [" + "|".join(BUILT_IN) + "]" in fedlap("bench", "grid", "--help").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--rounds", "ten"], "must be a whole number, for example rounds = 34"),
        (["--rounds", "0"], "the nearest valid value is 1"),
        (["--dropout", "nan"], "is out of range (0 to 0.99)"),
        (["--dataset", "coar"], "the nearest valid choice is 'cora'"),
        (["--method", "fedagv"], "the nearest valid choice is 'fedavg'"),
        (["--method", "fedavg", "--vectors", "12"], "has no effect on method 'fedavg'"),
        (["--vector", "12"], "--vectors"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence):
    result = fedlap("train", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr.splitlines()[-1]


def test_a_preset_of_another_method_goes_with_one_line(tmp_path):
    preset = tmp_path / "preset.toml"
    preset.write_text("method = 'fedlap+'\nvectors = 12\nrank = 5\nhidden = '4'\n")
    result = fedlap("train", "--conf", str(preset), "--method", "fedavg", *QUICK, "--json")
    assert result.exit_code == 0
    lines = [line for line in result.stderr.splitlines() if "preset" in line]
    assert lines == ["Method fedavg ignores of the preset: vectors, rank"]
    assert json.loads(result.stdout)["method"] == "fedavg"


def test_what_a_command_usually_takes_decides_what_it_reads():
    refused = fedlap("bench", "grid", "--vectors", "12")  # which trains with fedavg
    assert refused.exit_code == 2
    assert "vectors = 12 has no effect on method 'fedavg'" in refused.stderr
