"""Whoever submits a run delivers a bundle: no organisation runs it, whatever the task is called."""

import argparse
import io
import os
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor

import fedlap_app
from client_app.launch import do_task
from client_app.superexec import connect
from fedlap_app.deploy.demo import make_demo
from fedlap_app.flower import package
from fedlap_app.graphs.federation import DataSpec
from fedlap_app.settings import Settings
from tests.adversary.evil import evil_modules
from tests.adversary.supernode import SECRET, SuperNode, bundle_of

OURS = fedlap_app.__version__
BANKS = DataSpec(dataset="banks", clients=2, accounts=200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_demo(tmp_path_factory.mktemp("demo") / "out", BANKS).organisation("bank-00")


@pytest.fixture
def node(folder):
    store = str(folder / "data" / "store")
    names = {"data-dir": str(folder / "data"), "store-dir": store}
    with SuperNode({**names, "federation": str(folder / "federation.toml")}) as made:
        yield made


@pytest.fixture
def mark(tmp_path, monkeypatch):
    """A file that appears when delivered code runs; Flower would install below FLWR_HOME."""
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "flwr"))
    return tmp_path / "mark"


def do(node, kind, bundle, **named):
    """Let the launcher do one task, in this process; its reply."""
    run, task = node.send(kind, bundle, config=Settings(clients=2).to_config(), **named)
    token = RuntimeTokenHttpInterceptor(node.state.claim_task(task))
    given = argparse.Namespace(
        runtime_api_address=node.address, insecure=True, root_certificates=None
    )
    client = connect(given, "flwr-clientapp", token)
    try:
        do_task(client, kind)
    finally:
        client.close()
    assert node.finished(task)
    return node.reply(run)


def test_the_installed_app_answers_a_run_whose_bundle_has_other_handlers(
    node, mark, tmp_path, caplog
):
    bundle = bundle_of(evil_modules(str(mark)), OURS)
    reply = do(node, TaskType.CLIENT_APP, bundle)
    assert set(reply.content) == {"member"}
    assert reply.content["member"]["name"] == "bank-00"
    (line,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "has other code than the package that is installed and runs here" in line
    assert not mark.exists()
    assert not (tmp_path / "flwr").exists()


@pytest.mark.parametrize(
    "kind", [*(each for each in TaskType if each != TaskType.CLIENT_APP), "flwr-of-the-future"]
)
def test_every_other_kind_of_task_is_refused(node, mark, tmp_path, caplog, kind):
    reply = do(node, kind, bundle_of(evil_modules(str(mark)), OURS))
    sentence = f"a task of kind '{kind}' is refused: only this organisation's ClientApp runs"
    assert reply.error.reason == sentence
    assert [each.getMessage() for each in caplog.records if each.name == "fedlap"] == [sentence]
    assert not mark.exists()
    assert not (tmp_path / "flwr").exists()


@pytest.mark.parametrize("named", [{"version": "99.0"}, {"name": "other"}, {"version": "x\n" * 99}])
def test_a_run_of_another_version_is_refused(node, mark, named):
    reply = do(node, TaskType.CLIENT_APP, bundle_of(evil_modules(str(mark)), OURS), **named)
    refusal = reply.content["refusal"]
    assert refusal["who"] == "bank-00"
    assert refusal["reason"].startswith(f"it has fedlap/fedlap {OURS} installed and the run brings")
    assert "\n" not in refusal["reason"]
    assert len(refusal["reason"]) < 300


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (f'version = "{OURS}"', 'version = "99.0"', "its federation file asks for version 99.0"),
        ('code = "', 'code = "00', None),
    ],
)
def test_what_the_coordinator_says_is_compared(node, folder, mark, caplog, old, new, says):
    file = folder / "federation.toml"
    before = file.read_text()
    file.write_text(before.replace(old, new, 1))
    try:
        reply = do(node, TaskType.CLIENT_APP, bundle_of(evil_modules(str(mark)), OURS))
    finally:
        file.write_text(before)
    if says:
        assert reply.content["refusal"]["reason"].startswith(says)
    else:
        assert "member" in reply.content
        assert "The federation file names other code ('00" in caplog.text


def test_the_package_as_a_bundle_does_not_differ():
    root = Path(fedlap_app.__file__).parents[1]
    names = list(package.installed_modules())
    same = {name: (root / name).read_text(encoding="utf-8") for name in names}
    assert package.modules_that_differ(bundle_of(same, OURS).content) == []
    changed = {**same, "fedlap_app/flower/client/handlers.py": "", "fedlap_app/new.py": ""}
    del changed["fedlap_app/flower/client/once.py"]
    found = package.modules_that_differ(bundle_of(changed, OURS).content)
    assert found == [
        "fedlap_app/flower/client/handlers.py",
        "fedlap_app/flower/client/once.py",
        "fedlap_app/new.py",
    ]
    assert package.modules_that_differ(b"junk") == sorted(names)


def test_a_bundle_that_unpacks_to_gigabytes_takes_no_memory():
    name, body = next(iter(package.installed_modules().items()))
    size = 2**24
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(size))
        archive.writestr("fedlap_app/errors.py", bytes(size), zipfile.ZIP_BZIP2)
    claimed = packed.getvalue().replace(struct.pack("<I", size), struct.pack("<I", len(body)))
    tracemalloc.start()
    try:
        assert name in package.modules_that_differ(claimed)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()


def test_no_folder_and_no_variable_chooses_the_modules(node, mark, tmp_path):
    """The process itself, started among modules of the same names."""
    if not _is_installed():
        pytest.skip("the package that is installed here is not this checkout")
    for name, text in evil_modules(str(mark)).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "secret").write_bytes(SECRET)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONSTARTUP": "client_app/app.py"}
    words = ["--insecure", "--runtime-api-address", node.address]
    words += ["--superexec-auth-secret-file", str(tmp_path / "secret")]
    bundle = bundle_of(evil_modules(str(mark)), OURS)
    config = Settings(clients=2).to_config()
    client, task = node.send(TaskType.CLIENT_APP, bundle, config=config)
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "client_app.superexec", *words], cwd=tmp_path, env=environment
    )
    try:
        deadline = time.monotonic() + 120
        while not node.finished(task) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    assert node.reply(client).content["member"]["name"] == "bank-00"
    assert not mark.exists()
    assert not (tmp_path / "flwr").exists()


def _is_installed() -> bool:
    told = subprocess.run(
        [sys.executable, "-I", "-c", "import fedlap_app; print(fedlap_app.__file__)"],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() == fedlap_app.__file__
