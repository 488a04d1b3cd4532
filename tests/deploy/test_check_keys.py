import shutil

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from fedlap_app.deploy.certificates import make_authority, make_server, read_pair
from fedlap_app.deploy.check_keys import check_folder
from fedlap_app.deploy.demo import make_demo
from fedlap_app.deploy.findings import failed
from fedlap_app.deploy.organisation import make_request
from fedlap_app.errors import ConfigError
from fedlap_app.sums.identity import Identity
from tests.deploy.conftest import SMALL


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return make_demo(tmp_path_factory.mktemp("demo") / "out", SMALL, servers=("a.example.org",))


@pytest.fixture
def demo(made, tmp_path):
    """A copy that a test may damage; its stores are those of the copy."""
    shutil.copytree(made.out, tmp_path / "demo")
    for env in (tmp_path / "demo").rglob("organisation.env"):
        env.write_text(env.read_text().replace(str(made.out), str(tmp_path / "demo")))
    return tmp_path / "demo"


def complaints(folder):
    found = check_folder(folder)
    assert failed(found) == any(each.state == "fail" for each in found)
    return [each.line for each in found if each.state != "ok"]


def test_a_fresh_federation_has_nothing_to_complain_about(demo):
    found = check_folder(demo)
    assert [each.line for each in found if each.state != "ok"] == []
    lines = "\n".join(each.line for each in found)
    for word in (
        "good until",
        "covers",
        "a.example.org",
        "only its owner",
        "fingerprint",
        "SHA-256",
    ):
        assert word in lines
    assert complaints(demo / "organisations" / "bank-00") == []


@pytest.mark.parametrize(
    "name",
    [
        "coordinator/ca/ca.key",
        "coordinator/superlink/server.key",
        "coordinator/superlink/superexec-secret",
    ],
)
def test_a_key_that_others_can_read(demo, name):
    (demo / name).chmod(0o640)
    (line,) = complaints(demo / "coordinator")
    assert "mode 0640 lets others read it" in line


def test_keys_of_an_organisation_that_others_can_read(demo):
    folder = demo / "organisations" / "bank-01"
    for path in (folder / "keys" / "supernode", folder / "data" / "store" / "offline" / "identity"):
        path.chmod(0o644)
        (line,) = complaints(folder)
        assert "0644" in line
        path.chmod(0o600)


@pytest.mark.parametrize(("days", "says"), [(-1, "fail"), (10, "warn")])
def test_the_end_of_a_certificate(demo, days, says):
    folder = demo / "coordinator"
    authority = read_pair(folder / "ca" / "ca.crt", folder / "ca" / "ca.key")
    names = ("a.example.org", "localhost", "127.0.0.1", "::1")
    server = make_server(authority, "demo", names, days)
    server.save(folder / "superlink" / "server.crt", folder / "superlink" / "server.key")
    (line,) = complaints(folder)
    assert line.startswith(says)
    assert "server certificate" in line
    assert "--renew" in line


def test_missing_names_and_a_foreign_certificate(demo):
    folder = demo / "coordinator"
    authority = read_pair(folder / "ca" / "ca.crt", folder / "ca" / "ca.key")
    files = folder / "superlink" / "server.crt", folder / "superlink" / "server.key"
    make_server(authority, "demo", ("localhost", "127.0.0.1", "::1"), 90).save(*files)
    (line,) = complaints(folder)
    assert "does not cover a.example.org" in line
    make_server(authority, "demo", ("localhost",), 90).save(files[0], folder / "other.key")
    (line,) = complaints(folder)
    assert "does not belong to" in line


def test_other_keys_than_those_that_were_sent(demo):
    folder = demo / "organisations" / "bank-02"
    identity = folder / "data" / "store" / "offline" / "identity"
    identity.unlink()
    Identity.generate().save(identity)
    (line,) = complaints(folder)
    assert "request.json" in line
    shutil.copy(demo / "organisations" / "bank-01" / "ca.crt", folder / "ca.crt")
    shutil.copy(demo / "organisations" / "bank-01" / "keys" / "supernode", folder / "keys")
    assert any("SuperNode key" in line for line in complaints(folder))


def test_a_member_of_another_federation(demo, tmp_path):
    other = make_demo(tmp_path / "other", SMALL)
    folder = demo / "organisations" / "bank-00"
    shutil.copy(other.organisation("bank-00") / "federation.toml", folder)
    lines = complaints(folder)
    assert any("ca.crt" in line and "SHA-256" in line for line in lines)
    assert any("has other keys for bank-00" in line for line in lines)


def test_before_the_coordinator_answered(places):
    make_request(places["bank-00"])
    (line,) = complaints(places["bank-00"].out)
    assert line.startswith("warn")
    assert "not here yet" in line


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="holds neither"):
        check_folder(tmp_path)


def remove(path):
    path.unlink()


def garbage(path):
    path.write_bytes(b"\xff\x00 garbage")


def empty(path):
    path.write_bytes(b"")


def readable(path):
    path.chmod(0o644)


def open_to_others(path):
    path.chmod(0o775)


def without(line):
    def change(path):
        kept = [each for each in path.read_text().splitlines() if not each.startswith(line)]
        path.write_text("\n".join(kept) + "\n")

    return change


def stock(path):
    path.write_text(path.read_text().replace("python -I -m client_app", "flower-"))
    path.write_text(path.read_text() + "# flower-superexec\n")


def no_names(path):
    kept = path.read_text().replace('names = ["a.example.org"]', "names = []")
    path.write_text(kept)


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("keys/runtime.key", readable, "mode 0644 lets others read it"),
        ("keys/runtime.key", remove, "restore it from a backup or make new keys"),
        ("keys/runtime.crt", garbage, "is no certificate in PEM: remove"),
        ("keys/runtime.crt", remove, "keys/runtime.crt: remove"),
        ("keys/runtime-ca.crt", remove, "run `fedlap keys request` again"),
        ("keys/superexec-secret", empty, "is empty"),
        ("keys/supernode", remove, "restore it from a backup"),
        ("keys", open_to_others, "`chmod go-w"),
        ("organisation.env", remove, "run `fedlap keys request` again"),
        ("organisation.env", without("FEDLAP_ORG_DATA"), "has no FEDLAP_ORG_DATA: run"),
        ("organisation.env", garbage, "is not UTF-8 text: correct it"),
        ("data/store/offline/identity", remove, "restore the store"),
        ("federation.toml", no_names, "names no server"),
        ("federation.toml", garbage, "get the file from the coordinator again"),
        ("ca.crt", remove, "copy the file again"),
        ("ca.crt", garbage, "copy the file again"),
        ("start.sh", remove, "run `fedlap keys request` again"),
        ("compose.yml", remove, "run `fedlap keys request` again"),
        ("start.sh", stock, "may run the code that comes with a run: run `fedlap keys request`"),
        ("compose.yml", stock, "may run the code that comes with a run: run `fedlap keys request`"),
    ],
)
def test_damage_to_an_organisations_folder(demo, file, damage, says):
    folder = demo / "organisations" / "bank-01"
    damage(folder / file)
    (line,) = complaints(folder)
    assert line.startswith("fail")
    assert says in line
    assert "Errno" not in line


@pytest.mark.parametrize(
    ("file", "damage", "says"),
    [
        ("superlink/ca.crt", garbage, "is not the same as"),
        ("superlink/ca.crt", remove, "is not the same as"),
        ("organisations/bank-01/ca.crt", garbage, "is no certificate in PEM"),
        ("organisations/bank-01/ca.crt", remove, "copy the file again"),
        ("superlink/federation.toml", garbage, "is not the same as"),
        ("superlink/superexec-secret", empty, "is empty"),
        ("superlink/server.crt", remove, "copy the file again"),
        ("ca", open_to_others, "`chmod go-w"),
        ("superlink", open_to_others, "`chmod go-w"),
        ("superlink/start.sh", remove, "`fedlap keys issue --out"),
        ("superlink/keys/bank-00.pub", garbage, "bank-00.pub is out of date"),
        ("federation.toml", remove, "There is no federation.toml"),
    ],
)
def test_damage_to_the_coordinators_folder(demo, file, damage, says):
    folder = demo / "coordinator"
    damage(folder / file)
    (line,) = complaints(folder)
    assert line.startswith("fail")
    assert says in line
    assert "Errno" not in line


def test_the_certificate_of_another_authority(demo):
    other = make_authority("other").certificate.public_bytes(Encoding.PEM)
    (demo / "coordinator" / "organisations" / "bank-02" / "ca.crt").write_bytes(other)
    (line,) = complaints(demo / "coordinator")
    assert "is of another authority" in line


def test_the_authoritys_key_may_be_in_a_safe(demo):
    (demo / "coordinator" / "ca" / "ca.key").unlink()
    assert complaints(demo / "coordinator") == []
    shutil.rmtree(demo / "coordinator" / "ca")
    assert complaints(demo / "coordinator") == []
