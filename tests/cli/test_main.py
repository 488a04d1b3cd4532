import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from fedlap_app.cli import _COMMANDS, main


def every_command():
    context = click.Context(main)
    for name in _COMMANDS:
        command = main.get_command(context, name)
        if isinstance(command, click.Group):
            for inner in command.commands:
                yield [name, inner]
        else:
            yield [name]


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_help_shows_an_example_and_json_is_offered(words):
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0
    assert "Example: fedlap" in " ".join(result.output.split())
    assert "--json" in result.output


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train", "--dataset", "coar"], "nearest valid choice is 'cora'"),
        (["train", "--rounds", "many"], "must be a whole number"),
        (["train", "--conf", "none.toml"], "no preset file"),
        (["train", "--conf", "corra"], "the nearest one is cora"),
        (["check", __file__], "is a file: name a folder of organisation folders"),
        (["train", "--data", "/nowhere"], "/nowhere"),
        (["predict", "/nowhere"], "no folder /nowhere"),
        (
            ["train", "--seed", "1180591620717411303424"],
            "nearest valid value is 9223372036854775807",
        ),
        (["train", "--clients", "1000000000"], "nearest valid value is 10000"),
        (["train", "--accounts", "1000001"], "nearest valid value is 1000000"),
        (["run", "--method", "central"], "needs all data in one place"),
        (["run", "--dropout", "7"], "nearest valid value is 0.99"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, sentence):
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output
    assert len(result.output.strip().splitlines()) == 1


@pytest.mark.parametrize("words", [["datasets"], ["datasets", "--json"], ["--help"], ["status"]])
def test_a_closed_pipe_ends_quietly(words, tmp_path):
    (tmp_path / "runs" / "x-1").mkdir(parents=True)
    (tmp_path / "runs" / "x-1" / "config.json").write_text("{}")
    command = "import sys; sys.stdin.read(); from fedlap_app.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"FEDLAP_HOME": str(tmp_path)},
    )
    process.stdout.close()  # before anything is written
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 1
    process.stderr.close()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ["train", "--accounts", "240", "--clients", "3", "--rounds", "2", "--vectors", "12"],
            0,
            ("INFO", "Privacy: "),
        ),
        (["train", "--data", "/nowhere"], 2, ("ERROR", "/nowhere")),
    ],
)
def test_all_of_stderr_is_json_when_asked_for(words, code, said, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from fedlap_app.cli import main; main()", *words],
        capture_output=True,
        text=True,
        check=False,
        env={"FEDLAP_HOME": str(tmp_path), "FEDLAP_LOG": "json"},
    )
    assert done.returncode == code
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    level, part = said
    assert any(line["level"] == level and part in line["message"] for line in lines)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("tran", "did you mean `fedlap train`?"), ("raport", "did you mean `fedlap report`?"),
     ("qqqq", "`fedlap --help` lists them")],
)  # fmt: skip
def test_a_command_that_is_not_there_gets_a_suggestion(typed, meant):
    result = CliRunner().invoke(main, [typed])
    assert result.exit_code == 2
    assert meant in result.output


def test_the_package_is_a_command():
    done = subprocess.run(
        [sys.executable, "-m", "fedlap_app", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("fedlap, version ")
