"""Every command that a newcomer meets, but for servers, runs to its end on data that are small."""

import click
import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.store import places
from tests.docs.test_commands import PAGES, commands, write_exports

WALKS = ("README.md", "own-data.md", "three-folders.md", "reports.md")
ABROAD = ("--serve", "--mlflow")
SMALLER = {
    "--accounts": "300", "--clients": "3", "--rounds": "2", "--local-epochs": "1", "--hidden": "8",
    "--self-training": "0", "--vectors": "6",
}  # fmt: skip
QUICK = ("--rounds", "--local-epochs", "--hidden", "--self-training", "--vectors")


def local_commands():
    """Commands that one machine can run, each once."""
    seen = set()
    for path in (page for page in PAGES if page.name in WALKS):
        for words in commands(path):
            if words[0] != "fedlap" or tuple(words) in seen:
                continue
            if any(word in ABROAD for word in words):
                continue
            seen.add(tuple(words))
            yield pytest.param(words[1:], id=" ".join(words[1:]))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder as the pages have it: exports, organisations, presets, and two runs."""
    folder = tmp_path_factory.mktemp("workplace")
    write_exports(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAP_HOME", str(folder / "home"))
        patch.chdir(folder)
        for line in (
            "partition banks --accounts 300 --clients 3 --out orgs",
            "train --data orgs --rounds 2 --hidden 8 --vectors 6 --self-training 0",
            "train --data orgs --rounds 2 --hidden 8 --vectors 6 --self-training 0 --seed 1",
        ):
            done = CliRunner().invoke(main, line.split())
            assert done.exit_code == 0, done.output
    return folder


def smaller(words, number, runs):
    """The same command with less to do."""
    command, left = main, list(words)
    while isinstance(command, click.Group):
        _, command, left = command.resolve_command(click.Context(command), left)
    has = {option for each in command.params for option in each.opts}
    words = [_place(word, number, runs) for word in words]
    for option, value in SMALLER.items():
        if option in words:
            words[words.index(option) + 1] = value
    if "--out" in words:
        words[words.index("--out") + 1] += f"-{number}"
    lacking = [option for option in QUICK if option in has and option not in words]
    if "--accounts" in has and not {"--data", "--accounts"} & {*words}:
        lacking.append("--accounts")
    return [*words, *(part for option in lacking for part in (option, SMALLER[option]))]


def _place(word, number, runs):
    if word.startswith("~/.fedlap/runs/"):
        return str(runs[word.endswith("SECOND")])
    return "orgs/bank-00" if word in ("orgs/bank-a", "orgs/carrier-east") else word


@pytest.mark.slow
@pytest.mark.parametrize("words", local_commands())
def test_it_runs(words, workplace, monkeypatch, request):
    monkeypatch.setenv("FEDLAP_HOME", str(workplace / "home"))
    monkeypatch.chdir(workplace)
    runs = sorted(path for path in places.runs_dir().iterdir() if "orgs" in path.name)
    number = abs(hash(request.node.name))
    done = CliRunner().invoke(main, smaller(words, number, runs))
    assert done.exit_code == 0, done.output[-2000:] + repr(done.exception)
