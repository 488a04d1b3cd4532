"""A method from outside of the package: in this process, in others, and at who did not agree."""

import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import fedlap_app as fedlap
from client_app.app import app
from fedlap_app.cli import main
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.flower.grids.local_grid import (
    InProcessGrid,
    ProcessGrid,
    folder_configs,
    new_run_id,
    partition_configs,
)
from fedlap_app.flower.server.observer import Unwatched
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import write_folder
from fedlap_app.methods import registry
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.settings import Settings, parse_settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_method" / "focal.py"
QUICK = {"rounds": 2, "model": "decoupled", "hidden": "8", "self_training": 0, "seed": 1}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Nothing that a test registers is known to the next one."""
    monkeypatch.setattr(registry, "_registered", {})
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


@pytest.fixture
def focal():
    spec = importlib.util.spec_from_file_location("focal_example", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module.Focal
    del sys.modules[spec.name]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example as pip would install it, for this process and those that it starts."""
    site = tmp_path / "site"
    facts = site / "fedlap_focal-0.1.0.dist-info"
    facts.mkdir(parents=True)
    (site / "focal.py").write_text(EXAMPLE.read_text(encoding="utf-8"), encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: fedlap-focal\nVersion: 0.1.0\n")
    (facts / "entry_points.txt").write_text("[fedlap.methods]\nfocal = focal:Focal\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    yield site / "focal.py"
    sys.modules.pop("focal", None)


@pytest.fixture
def orgs():
    return fedlap.load("banks", clients=3, accounts=240)


def test_the_example_is_under_80_lines():
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 80


def test_a_method_is_handed_over_as_a_class_or_with_options(orgs, focal):
    usual = fedlap.train(orgs, focal, **QUICK)
    assert usual.settings.method == "focal"
    assert usual.settings.options == (("focus", 2.0),)
    other = fedlap.train(orgs, focal(focus=0.0), **QUICK)
    assert dict(other.settings.options) == {"focus": 0.0}
    assert other.summary["loss"] != usual.summary["loss"]
    by_name = fedlap.train(orgs, "focal", focus=0.0, **QUICK)
    assert by_name.summary["loss"] == other.summary["loss"]
    # Without focus it is the mean cross-entropy.
    assert other.summary["loss"]["test"] == pytest.approx(
        fedlap.train(orgs, "fedavg", **QUICK).summary["loss"]["test"], rel=1e-4
    )
    assert set(usual.predict("bank-00")["predicted"]) <= set(orgs["bank-00"].classes)


def test_wrong_options_and_names_are_told(orgs, focal):
    with pytest.raises(ConfigError, match=r"focus = -1\.0 is out of range"):
        focal(focus=-1.0)
    with pytest.raises(ConfigError, match="unknown setting 'fokus'"):
        fedlap.train(orgs, focal, fokus=1.0)
    with pytest.raises(ConfigError, match="unknown setting 'focus'"):
        fedlap.train(orgs, "fedavg", focus=1.0)
    fedlap.register(focal)
    with pytest.raises(ConfigError, match=r"method = 'fokal' is not one of .*'focal'"):
        parse_settings({"method": "fokal"})

    class Impostor(FedAvg):
        name = "fedavg"

    with pytest.raises(ConfigError, match="'fedavg' comes with the app"):
        fedlap.register(Impostor)


def test_an_installed_method_cannot_pass_under_a_name_of_the_app(installed):
    """A policy asks for no hash of what comes with the app."""
    code = EXAMPLE.read_text(encoding="utf-8").replace('= "focal"', '= "fedavg"')
    installed.write_text(code, encoding="utf-8")
    with pytest.raises(ConfigError, match="installed method 'focal' calls itself 'fedavg'"):
        small()


def test_its_options_are_on_the_command_line(focal):
    def said(*words):
        result = CliRunner().invoke(main, ["train", "--method", "focal", *words])
        return result.stdout or result.stderr

    assert "--focus" not in said("--help")
    fedlap.register(focal)
    assert re.search(r"Options of the method:\n +--focus FLOAT RANGE", said("--help"))
    assert "focus = -1.0 is out of range" in said("--focus", "-1")
    # It reads what the method that it is derived from reads.
    assert "vectors = 12 has no effect on method 'focal'" in said("--focus", "1", "--vectors", "12")
    quick = ["--accounts", "240", "--rounds", "1", "--self-training", "0", "--hidden", "4"]
    found = json.loads(said(*quick, "--focus", "0.5", "--json"))
    config = Path(found["run_folders"][0], "config.json").read_text(encoding="utf-8")
    assert json.loads(config)["focus"] == 0.5


def small(**more):
    keys = {"dataset": "banks", "clients": 2, "accounts": 240, "rounds": 1, "hidden": "8"}
    return parse_settings({**keys, "self-training": 0, "method": "focal", "focus": 1.0, **more})


def test_an_installed_method_runs_in_processes_of_its_own(installed):
    # Without the messages of sealed sums: each of them starts a process.
    settings = small(**{"training-backend": "plain", "standardise": "none"})
    config, nodes = settings.to_config(), partition_configs(2)
    apart = run(ProcessGrid(nodes, config, run_id=new_run_id()), settings, Unwatched())
    here = run(InProcessGrid(app, nodes, config, run_id=new_run_id()), settings, Unwatched())
    assert apart["loss"] == here["loss"]


def test_organisations_agree_on_the_options(installed):
    assert small().digest() != small(focus=3.0).digest()


def test_a_deployed_organisation_takes_only_what_its_policy_lists(installed, tmp_path):
    folders = []
    for part in load_federation(replace(Settings(), clients=2, accounts=240).data_spec):
        folders.append(tmp_path / part.name)
        write_folder(part, folders[-1])
    settings = small(**{"trust-on-first-use": True})

    def train():
        config = settings.to_config()
        grid = InProcessGrid(app, folder_configs(folders), config, run_id=new_run_id())
        return run(grid, settings, Unwatched())

    with pytest.raises(RunError, match="its policy does not list it as it is installed") as refused:
        train()
    line = str(refused.value).split("`")[1]
    for folder in folders:
        with (folder / "org.toml").open("a", encoding="utf-8") as file:
            file.write(f"[policy]\n{line}\ntwo-members = true\ntrust-on-first-use = true\n")
    assert train()["rounds"] == 1
    installed.write_text(EXAMPLE.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    with pytest.raises(RunError, match="its policy does not list it"):
        train()
