"""The compose files against the specification, Flower's own options and what they promise."""

import argparse
import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import flwr
import pytest
import yaml
from flwr.supercore.auth import add_superexec_auth_secret_args
from jsonschema import Draft202012Validator

import fedlap_app
from client_app.superexec import add_connection
from fedlap_app.deploy.demo import make_demo
from fedlap_app.graphs.federation import DataSpec

FOLDER = Path(__file__).parents[2] / "docker"
NAMES = ("compose.yml", "compose.tls.yml", "compose.gpu.yml")
BANKS = ("bank-00", "bank-01", "bank-02")
PREDICTS = {f"predict-{number:02d}" for number in range(3)}
ONCE = ("setup", "register", "run", *sorted(PREDICTS))


@pytest.fixture(scope="module")
def specification():
    vendored = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    return Draft202012Validator(json.loads(vendored.read_text(encoding="utf-8")))


def content(name):
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def base():
    return content("compose.yml")["services"]


@pytest.mark.parametrize("name", NAMES)
def test_the_files_follow_the_compose_specification(specification, name):
    assert [error.message for error in specification.iter_errors(content(name))] == []


def test_an_organisation_gets_a_file_that_follows_it(specification, tmp_path):
    made = make_demo(tmp_path / "demo", DataSpec(dataset="banks", clients=2, accounts=200))
    file = made.organisation("bank-00") / "compose.yml"
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert [error.message for error in specification.iter_errors(found)] == []


@pytest.mark.parametrize(
    "change", [{"restarts": "always"}, {"healthcheck": {"tests": []}}, {"user": 49999.5}]
)
def test_the_specification_finds_mistakes(specification, change):
    broken = {"services": {"one": {"image": "x", **change}}}
    assert list(specification.iter_errors(broken))


def test_versions_are_those_of_the_app_and_of_flower(base):
    images = {facts["image"] for facts in base.values()}
    images |= {facts["image"] for facts in content("compose.gpu.yml")["services"].values()}
    images |= {content("compose.tls.yml")["services"]["register"]["image"]}
    ours = fedlap_app.__version__
    assert images == {
        f"fedlap/superexec:{ours}",
        f"fedlap/superexec:{ours}-cuda",
        f"flwr/superlink:{flwr.__version__}-py3.11-ubuntu24.04",
        f"flwr/supernode:{flwr.__version__}-py3.11-ubuntu24.04",
    }
    dockerfile = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    assert f"ARG FLOWER={flwr.__version__}\n" in dockerfile
    assert re.findall(r"^FROM base AS (\w+)$", dockerfile, re.M) == ["cpu", "cuda"]


def test_nobody_is_root(base):
    register = content("compose.tls.yml")["services"]["register"]
    for facts in (*base.values(), register):
        assert facts["user"] == "49999:49999"
    users = re.findall(r"^USER (\w+)$", (FOLDER / "Dockerfile").read_text(), re.M)
    assert users == ["root", "app"]


def test_lasting_services_have_a_health_check_and_start_again(base):
    for name, facts in base.items():
        if name in ONCE:
            continue
        assert facts["healthcheck"]["test"][0] == "CMD", name
        assert facts["restart"] == "unless-stopped", name


def test_every_party_has_its_own_volume_and_network(base):
    for name, facts in base.items():
        if name == "setup":
            assert facts["network_mode"] == "none"
            continue
        (volume,) = (each.split(":")[0] for each in facts["volumes"])
        number = name[-2:] if name[-2:].isdigit() else ""
        assert volume == (f"bank-{number}" if number else "coordinator")
        if name in PREDICTS:
            assert facts["network_mode"] == "none"
            continue
        foreign = {*BANKS} - {volume}
        assert not foreign & set(facts["networks"]), name
    for number in range(3):
        # Who holds data reaches its own SuperNode only.
        assert base[f"superexec-{number:02d}"]["networks"] == [f"bank-{number:02d}"]
    networks = content("compose.yml")["networks"]
    assert all(facts == {"internal": True} for facts in networks.values())


def test_each_bank_has_a_gpu_of_its_own(compose_file):
    found = set()
    for number in range(3):
        facts = content("compose.gpu.yml")["services"][f"superexec-{number:02d}"]
        (device,) = facts["deploy"]["resources"]["reservations"]["devices"]
        assert device["driver"] == "nvidia"
        assert device["capabilities"] == ["gpu"]
        found.update(device["device_ids"])
        assert facts["build"]["target"] == "cuda"
    assert len(found) == 3


def test_with_tls_nothing_crosses_parties_in_the_clear(tls_services):
    for name, service in tls_services.items():
        # SuperNode and SuperExec of one bank meet on a network of their own.
        inside = name.startswith("superexec-")
        assert ("--insecure" in service.command) == inside, name
    assert "--enable-supernode-auth" in tls_services["superlink"].command
    for number in range(3):
        node = tls_services[f"supernode-{number:02d}"]
        assert "--auth-supernode-private-key" in node.command
        assert node.after["register"] == "service_completed_successfully"
    assert "--root-certificates" in tls_services["run"].command


def test_banks_run_the_installed_app_only(services, tls_services):
    parser = argparse.ArgumentParser()
    add_connection(parser)
    add_superexec_auth_secret_args(parser)
    for number in range(3):
        for found in (services, tls_services):
            program, *words = found[f"superexec-{number:02d}"].command
            assert [program, *words[:3]] == ["python", "-I", "-m", "client_app.superexec"]
            given = parser.parse_args(words[3:])
            assert given.runtime_api_address == f"supernode-{number:02d}:9094"
            assert "process" in found[f"supernode-{number:02d}"].command


def test_flower_knows_every_option(services, tls_services):
    known = {}
    for service in (*services.values(), *tls_services.values()):
        program = service.command[0]
        if not program.startswith("flower-"):
            continue
        if program not in known:
            path = Path(sys.executable).parent / program
            shown = subprocess.run([path, "--help"], capture_output=True, text=True, check=True)
            known[program] = set(re.findall(r"--[a-z][a-z-]+", shown.stdout))
        options = {word for word in service.command if word.startswith("--")}
        assert options <= known[program], service.name
    assert set(known) == {"flower-superlink", "flower-supernode", "flower-superexec"}


def test_the_image_brings_what_the_app_needs():
    dockerfile = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    ignored = (FOLDER.parent / ".dockerignore").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY --chown=app:app (.+) \S+$", dockerfile, re.M)
    for name in {word for words in copied for word in words.split()}:
        assert (FOLDER.parent / name).exists(), name
        assert f"!{name}\n" in ignored, name
    mounts = re.findall(r"/[\w/-]+", dockerfile.split("install -d")[1].split("USER app")[0])
    volumes = content("compose.yml")["services"]["setup"]["volumes"]
    for volume in volumes:
        assert volume.split(":")[1] in mounts
