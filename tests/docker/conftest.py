"""The modules of `docker/`, which is no package, and what several tests read."""

import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docker"
BASE, TLS, GPU = (FOLDER / name for name in ("compose.yml", "compose.tls.yml", "compose.gpu.yml"))


@pytest.fixture(scope="session", autouse=True)
def docker_modules():
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in ("compose_file", "places", "processes"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def compose_file(docker_modules):
    return importlib.import_module("compose_file")


@pytest.fixture(scope="session")
def places(docker_modules):
    return importlib.import_module("places")


@pytest.fixture(scope="session")
def processes(docker_modules):
    return importlib.import_module("processes")


@pytest.fixture(scope="session")
def services(compose_file):
    return compose_file.read_services([BASE], {})


@pytest.fixture(scope="session")
def tls_services(compose_file):
    return compose_file.read_services([BASE, TLS], {})
