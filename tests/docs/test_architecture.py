"""The lists of docs/architecture.md, followed in a copy of the code: these files and no others."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

METHOD = '''
from fedlap_app.methods.fedavg import FedAvg


class Calm(FedAvg):
    """FedAvg with a smaller loss."""

    name = "calm"
    summary = "half of the loss"
    programs = ("twice",)

    def loss(self, model, inputs):
        return 0.5 * super().loss(model, inputs)
'''
BACKEND = """
from fedlap_app.sums.plain import PlainAccumulator, PlainBackend


class LoudBackend(PlainBackend):
    name = "loud"


class LoudAccumulator(PlainAccumulator):
    pass
"""
SOLVER = """
from fedlap_app.spectral.solvers.block_lanczos import BlockLanczos


class Again(BlockLanczos):
    name = "again"
"""
PROGRAM = """
from fedlap_app.sums.programs.neighbour_sums import NeighbourSums


class Twice(NeighbourSums):
    name = "twice"
"""
COMMAND = '''
import click


@click.command()
def hello():
    """Say hello."""
    click.echo("hello")
'''
CHECK = """
from click.testing import CliRunner
from fedlap_app.cli import main
from fedlap_app.cli.hello import hello

import fedlap_app as fedlap

assert CliRunner().invoke(main, ["hello"]).stdout == "hello\\n"
orgs = fedlap.load("banks", clients=3, accounts=240)
quick = dict(rounds=1, hidden="8", self_training=0)
calm = fedlap.train(orgs, "calm", backend="loud", patience_of_job=3, **quick)
assert calm.settings.patience_of_job == 3
quick |= dict(vectors=6, block=3)
basis = fedlap.train(orgs, "fedlap+", backend="loud", solver="again", **quick).basis("bank-00")
usual = fedlap.train(orgs, "fedlap+", backend="mask", **quick).basis("bank-00")
assert abs(basis.eigenvalues - usual.eigenvalues).max() < 1e-6
from fedlap_app.studies.planning.columns import COLUMNS
assert "loud" in COLUMNS
print("followed")
"""
CHANGES = {
    "method": {
        "fedlap_app/methods/calm.py": METHOD,
        "fedlap_app/methods/registry.py": ("_HOMES = {\n", '    "calm": "calm:Calm",\n'),
    },
    "back end": {
        "fedlap_app/sums/loud.py": BACKEND,
        "fedlap_app/sums/choice.py": (
            "[type[SumBackend], type[Accumulator]]] = {\n",
            '    "loud": (LoudBackend, LoudAccumulator),\n',
            "from fedlap_app.sums.loud import LoudAccumulator, LoudBackend\n",
        ),
        "fedlap_app/privacy/policy.py": ("BACKENDS = (", '"loud", '),
    },
    "solver": {
        "fedlap_app/spectral/solvers/again.py": SOLVER,
        "fedlap_app/spectral/solvers/names.py": (
            "for solver in (",
            "Again, ",
            "from fedlap_app.spectral.solvers.again import Again\n",
        ),
    },
    "program": {
        "fedlap_app/sums/programs/twice.py": PROGRAM,
        "fedlap_app/sums/programs/__init__.py": (
            "for program in (",
            "Twice, ",
            "from fedlap_app.sums.programs.twice import Twice\n",
        ),
    },
    "command": {
        "fedlap_app/cli/hello.py": COMMAND,
        "fedlap_app/cli/__init__.py": (
            "_COMMANDS = {\n",
            '    "hello": "fedlap_app.cli.hello:hello",\n',
        ),
    },
    "setting": {
        "fedlap_app/settings.py": (
            "    method: str = knob(",
            "",
            "",
            '    patience_of_job: int = knob(0, "days", low=0)\n',
        ),
    },
}


def test_the_house_has_every_room_in_the_order_of_imports():
    house = PAGE.split("```text\n")[1].split("```")[0].splitlines()
    rooms = [line.split()[0].rstrip("/") for line in house if re.match(r"  [a-z]+/? ", line)]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (each["layers"] for each in contract["tool"]["importlinter"]["contracts"]
                 if each["type"] == "layers")  # fmt: skip
    alone = [each.removeprefix("fedlap_app.") for each in layers if " | " not in each]
    assert rooms == alone[::-1]
    inside = {path.parent.name for path in (ROOT / "fedlap_app").glob("*/__init__.py")}
    assert inside <= {*rooms}


def named_files(topic):
    """Files that the page names in the list of a topic."""
    part = PAGE.split(f"## How to add a {topic}\n")[1].split("\n## ")[0]
    found = re.findall(r"`((?:fedlap_app|pyproject)[\w/.]*)`", part)
    return {name for name in found if name.endswith((".py", ".toml"))}


@pytest.mark.parametrize("topic", CHANGES)
def test_the_page_names_every_file_of_the_change(topic):
    new = {"calm", "loud", "again", "twice", "hello"}
    stated = {re.sub(r"\bNAME\b", "*", name) for name in named_files(topic)}
    touched = {"/".join("*.py" if Path(f).stem in new and p == Path(f).name else p
                        for p in f.split("/")) for f in CHANGES[topic]}  # fmt: skip
    if topic == "program":  # its files are described in the text
        touched = {name for name in touched if "*" not in name}
    assert touched <= stated


def change(path, content):
    if isinstance(content, str):
        path.write_text(content.lstrip(), encoding="utf-8")
        return
    anchor, addition, imports, before = (*content, "", "")[:4]
    text = path.read_text(encoding="utf-8")
    assert text.count(anchor) == 1, f"{path}: {anchor!r}"
    text = text.replace(anchor, before + anchor + addition)
    path.write_text(_with_import(text, imports), encoding="utf-8")


def _with_import(text, line):
    return text.replace("\nfrom fedlap_app", f"\n{line}from fedlap_app", 1) if line else text


def test_the_lists_can_be_followed(tmp_path):
    for folder in ("fedlap_app", "client_app", "server_app"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for changes in CHANGES.values():
        for name, content in changes.items():
            change(tmp_path / name, content)
    done = subprocess.run(
        [sys.executable, "-c", CHECK], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "followed\n"
