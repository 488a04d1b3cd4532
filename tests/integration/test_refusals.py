"""What is wrong at one organisation ends the run with one sentence; the next run then works."""

import re
import shutil
import subprocess
from contextlib import contextmanager, suppress

import pytest

from fedlap_app.deploy.certificates import make_server, names_of, read_pair
from fedlap_app.deploy.supernode_key import make_supernode_key
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.folder import write_folder
from tests.integration.federation import ROOT, Federation
from tests.integration.processes import wait_for
from tests.integration.replay import assert_same_scores, replay
from tests.integration.test_faults import BANKS, CONFIG, FRESH, LIMIT

pytestmark = pytest.mark.faults
VICTIM = "bank-01"


@pytest.fixture(scope="module")
def banks(tmp_path_factory):
    with Federation(tmp_path_factory.mktemp("banks"), BANKS) as federation:
        yield federation


def refused(federation, config=CONFIG, **options):
    """The sentence of a run that stops."""
    outcome = federation.wait(federation.submit(config, **options), LIMIT)
    assert outcome.status == "finished:failed"
    assert outcome.error.count("\n") == 0
    return outcome.error


def works(federation, folder):
    """Whether a later run finishes with the right result."""
    outcome = federation.run(CONFIG, LIMIT)
    assert_same_scores(outcome.summary, replay(federation, outcome, CONFIG, folder))
    return outcome


@contextmanager
def reconfigured(federation, **values):
    """Another configuration of the victim for a while."""
    file = federation.folder(VICTIM) / "organisation.env"
    before = file.read_text()
    federation.reconfigure(VICTIM, **values)
    federation.restart(VICTIM)
    try:
        yield
    finally:
        file.write_text(before)
        federation.restart(VICTIM)


def fill(path):
    """Write into a file until there is no space left."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(b"x" * 4096):
            continue


def test_a_full_disk(banks, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "fedlap-test", str(store)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small file system can be mounted by root only")
    try:
        shutil.copytree(banks.store(VICTIM), store, dirs_exist_ok=True)
        with reconfigured(banks, FEDLAP_ORG_STORE=str(store)):
            filler = store / "filler"
            fill(filler)
            sentence = refused(banks, FRESH)
            assert sentence.startswith(f"{VICTIM}: its disk is full; free some space there")
            filler.unlink()
            works(banks, tmp_path / "replay")
    finally:
        subprocess.run(["umount", "--lazy", str(store)], check=False)


def test_the_data_of_another_organisation(banks):
    other = banks.folder("bank-02") / "data"
    with reconfigured(banks, FEDLAP_ORG_DATA=str(other)):
        sentence = refused(banks)
    assert f"the SuperNode of {VICTIM} has the data of bank-02: set FEDLAP_ORG_DATA" in sentence


def test_data_whose_edges_the_others_do_not_know(banks, tmp_path):
    spec = DataSpec(dataset="banks", clients=3, accounts=400, seed=7)
    part = next(part for part in load_federation(spec) if part.name == VICTIM)
    write_folder(part, tmp_path / "other")
    with reconfigured(banks, FEDLAP_ORG_DATA=str(tmp_path / "other")):
        sentence = refused(banks)
    assert VICTIM in sentence
    assert "edges" in sentence


def test_another_version_of_the_app(banks, tmp_path):
    project = tmp_path / "other"
    for name in ("fedlap_app", "server_app", "client_app"):
        skipped = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, project / name, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project / name)
    facts = project / "pyproject.toml"
    facts.write_text(facts.read_text().replace('\nversion = "', '\nversion = "99.'))
    sentence = refused(banks, project=project)
    assert sentence.startswith("bank-00, bank-01, bank-02: it has fedlap/fedlap ")
    assert "installed and the run brings 'fedlap/fedlap 99." in sentence
    assert "submit version" in sentence


def test_a_wrong_supernode_key(banks, tmp_path):
    key = banks.folder(VICTIM) / "keys" / "supernode"
    right = key.read_bytes()
    banks.organisations[VICTIM].stop()
    try:
        key.unlink()
        make_supernode_key(key, tmp_path / "pub", "stranger")
        banks.organisations[VICTIM].start()
        sentence = refused(banks, {**CONFIG, "join-timeout": 100.0, "step-timeout": 100.0})
    finally:
        banks.organisations[VICTIM].stop()
        key.write_bytes(right)
        banks.organisations[VICTIM].start()
    # The SuperLink takes a node for connected until a minute after its last heartbeat.
    assert re.match(f"{VICTIM} did not connect (again )?within 100 s: start the", sentence)
    assert "a key, a certificate or the clock" in sentence


def test_an_expired_certificate(banks, tmp_path):
    folder = banks.demo.superlink
    files = folder / "server.crt", folder / "server.key"
    right = [file.read_bytes() for file in files]
    authority = read_pair(
        *(banks.demo.out / "coordinator" / "ca" / n for n in ("ca.crt", "ca.key"))
    )
    names = names_of(read_pair(*files).certificate)
    banks.superlink.stop()
    try:
        make_server(authority, "demo", names, days=-1).save(*files)
        banks.superlink.start()
        done = banks.script("flwr.sh", "run", str(ROOT), "fedlap")
        assert done.returncode == 2
        expired = f"the certificate {files[0]} expired on "
        wait_for("the SuperLink says why", lambda: expired in banks.superlink.output)
        for told in (done.stderr, banks.superlink.output):
            assert expired in told
            assert "run 'fedlap keys issue --renew' at the coordinator" in told
    finally:
        for file, content in zip(files, right, strict=True):
            file.write_bytes(content)
    banks.start_superlink()
    works(banks, tmp_path / "replay")
