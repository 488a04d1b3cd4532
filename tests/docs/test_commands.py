"""Every command of README and docs is one that there is, with options that it has; some are run."""

import contextlib
import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner

from fedlap_app.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "examples/three_folders/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
MOST_WORDS = 900


def commands(path, kind="bash"):
    """Command lines of the blocks of a page, without comments and continuation."""
    text = path.read_text(encoding="utf-8")
    for block in re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            for part in re.split(r";\s+(?:then\s+)?", line):
                words = shlex.split(part, comments=True)
                if words:
                    yield words


def all_commands():
    for path in PAGES:
        for words in commands(path):
            if words[0] in ("fedlap", "make"):
                yield pytest.param(words, id=f"{path.name}: {' '.join(words)}"[:90])


def parsed(words, monkeypatch):
    """Let click parse a command without running it."""
    context = click.Context(main, info_name="fedlap", **main.context_settings)
    command, left = main, list(words)
    while isinstance(command, click.Group):
        name, found, left = command.resolve_command(context, left)
        context = click.Context(found, info_name=name, parent=context)
        command = found
    for option in command.params:  # a file of an example is not there
        if isinstance(option.type, click.Path):
            monkeypatch.setattr(option, "type", click.STRING)
    command.parse_args(context, left)


def targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))


@pytest.mark.parametrize("words", all_commands())
def test_every_command_is_there_with_its_options(words, monkeypatch):
    if words[0] == "make":
        given = [word for word in words[1:] if "=" not in word]
        assert set(given) <= targets()
        return
    given = words[1:]
    if "|" in given:
        given = given[: given.index("|")]
    if given and not given[0].startswith("-"):
        with contextlib.suppress(click.exceptions.Exit):  # of --help
            parsed(given, monkeypatch)


def test_the_readme_is_one_page():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


def write_exports(folder):
    """The two tables of the worked example, larger."""
    rng = np.random.default_rng(0)
    kinds, banks = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    lines = ["account,bank,class,balance,age"]
    for node in range(200):
        kind = ("ordinary", "mule")[kinds[node]] if node % 10 else ""
        balance = 100 + 40 * kinds[node] + rng.normal()
        lines.append(f"A{node},bank-{'ab'[banks[node]]},{kind},{balance:.1f},{30 + node % 40}")
    (folder / "accounts.csv").write_text("\n".join(lines) + "\n")
    pairs = rng.integers(0, 200, (900, 2))
    same = pairs[(kinds[pairs[:, 0]] == kinds[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])]
    found = sorted({(min(pair), max(pair)) for pair in same.tolist()})
    edges = [f"A{u},A{v},{rng.uniform(1, 9):.2f}" for u, v in found]
    (folder / "transfers.csv").write_text("\n".join(["from,to,amount", *edges]) + "\n")


def test_a_newcomer_gets_predictions_from_two_exports(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_exports(tmp_path)
    text = (ROOT / "docs" / "own-data.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- run: own-data -->\n```bash\n(.*?)```", text, re.DOTALL)
    for line in block.splitlines():
        done = CliRunner().invoke(main, shlex.split(line)[1:])
        assert done.exit_code == 0, f"{line}: {done.output}"
    rows = (tmp_path / "orgs" / "bank-a" / "predictions.csv").read_text().splitlines()
    assert len(rows) > 80
    assert "Report of bank-a" in (tmp_path / "orgs" / "bank-a" / "report.html").read_text()
