import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.provision.certificates import names_of, read_certificate, read_pair
from fedlap_app.provision.coordinator import Wishes, issue
from fedlap_app.provision.federation import read_federation_file
from fedlap_app.provision.organisation import make_request

NEW = Wishes(name="banks", servers=("fedlap.example.org", "192.0.2.7"))


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "coordinator"


@pytest.fixture
def federation(out, requests):
    return issue(out, list(requests.values()), NEW)


def test_the_federation_file_pins_the_members(out, federation, requests):
    assert read_federation_file(out / "federation.toml").pins == {
        name: request.fingerprint for name, request in requests.items()
    }
    assert federation.address == "fedlap.example.org:8000"
    authority = read_certificate(out / "ca" / "ca.crt")
    assert federation.authority_expires == authority.not_valid_after_utc


def test_the_certificate_covers_every_name_and_the_loopback(out, federation):
    names = names_of(read_certificate(out / "superlink" / "server.crt"))
    assert {"fedlap.example.org", "192.0.2.7", "localhost", "127.0.0.1"} <= set(names)


def test_an_organisation_gets_exactly_its_files_and_no_secret(out, federation):
    folder = out / "organisations" / "bank-01"
    assert files_of(folder) == {
        "README.md",
        "ca.crt",
        "compose.yml",
        "federation.toml",
        "start.sh",
        "systemd/fedlap-bank-01-superexec.service",
        "systemd/fedlap-bank-01-supernode.service",
    }
    text = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert "PRIVATE" not in text
    assert "--superlink fedlap.example.org:8000" in (folder / "start.sh").read_text()


def test_private_keys_are_for_the_coordinator_only(out, federation):
    for name in ("ca/ca.key", "superlink/server.key", "superlink/superexec-secret"):
        assert stat.S_IMODE((out / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((out / "ca").stat().st_mode) == 0o700


def test_a_new_request_adds_a_member_and_changes_nothing_else(out, requests):
    names = sorted(requests)
    issue(out, [requests[names[0]], requests[names[1]]], NEW)
    kept = [out / "ca" / "ca.key", out / "superlink" / "server.crt"]
    before = [path.read_bytes() for path in kept]
    federation = issue(out, [requests[names[2]]], Wishes())
    assert sorted(federation.pins) == names
    assert [path.read_bytes() for path in kept] == before
    assert federation.servers == NEW.servers
    register = (out / "superlink" / "register.sh").read_text()
    assert all(f"\nregister {name}\n" in register for name in names)


def test_renew_and_a_new_name_make_a_new_certificate_of_the_same_authority(out, federation):
    authority = (out / "ca" / "ca.crt").read_bytes()
    first = (out / "superlink" / "server.crt").read_bytes()
    renewed = issue(out, [], Wishes(renew=True, days=20))
    second = (out / "superlink" / "server.crt").read_bytes()
    assert second != first
    left = renewed.certificate_expires - datetime.now(UTC)
    assert timedelta(days=19) < left <= timedelta(days=20)
    issue(out, [], Wishes(servers=("other.example.org",)))
    names = names_of(read_certificate(out / "superlink" / "server.crt"))
    assert "other.example.org" in names
    assert (out / "ca" / "ca.crt").read_bytes() == authority


def test_an_authority_that_would_end_first_is_prolonged_with_its_key(out, federation):
    key = read_pair(out / "ca" / "ca.crt", out / "ca" / "ca.key").key.private_numbers()
    again = issue(out, [], Wishes(renew=True, days=3650))
    assert again.authority != federation.authority
    assert read_pair(out / "ca" / "ca.crt", out / "ca" / "ca.key").key.private_numbers() == key


def test_a_member_leaves(out, federation):
    after = issue(out, [], Wishes(remove=("bank-01",)))
    assert sorted(after.pins) == ["bank-00", "bank-02"]
    assert not (out / "organisations" / "bank-01").exists()
    assert not (out / "superlink" / "keys" / "bank-01.pub").exists()
    with pytest.raises(ConfigError, match="--remove 'bank-01'"):
        issue(out, [], Wishes(remove=("bank-01",)))


def test_other_keys_of_a_member_only_on_purpose(out, federation, places):
    renewed = make_request(places["bank-00"], renew=True)
    with pytest.raises(ConfigError, match="then add --replace"):
        issue(out, [renewed], Wishes())
    assert issue(out, [renewed], Wishes(replace=True)).pins["bank-00"] == renewed.fingerprint


def test_requests_that_do_not_fit_are_refused(out, requests):
    one, two, three = (requests[name] for name in sorted(requests))
    cases = [
        ([one, replace(two, schema="other")], "bank-01 and bank-00 have other classes"),
        ([one, replace(two, version="9.9")], "bank-01 runs FedLap 9.9"),
        ([one, replace(two, flower="1.0")], "bank-01 runs Flower 1.0"),
        ([one, one], "two requests are from 'bank-00'"),
        ([one, replace(one, name="bank-x")], "the same FedLap identity"),
        ([one, replace(two, supernode_key=one.supernode_key)], "the same SuperNode key"),
        ([], "there is no member"),
    ]
    for given, sentence in cases:
        with pytest.raises(ConfigError, match=sentence):
            issue(out, given, NEW)
    assert not out.exists()
    assert three.name == "bank-02"


def test_a_new_federation_needs_a_name_and_a_server(out, requests):
    given = list(requests.values())
    with pytest.raises(ConfigError, match="add --name"):
        issue(out, given, replace(NEW, name=None))
    with pytest.raises(ConfigError, match="add --server"):
        issue(out, given, replace(NEW, servers=()))
    issue(out, given, NEW)
    with pytest.raises(ConfigError, match="holds the federation 'banks'"):
        issue(out, given, replace(NEW, name="others"))


def test_behind_a_proxy_organisations_and_superlink_have_ports_of_their_own(out, requests):
    wishes = replace(NEW, port=443, listen="127.0.0.1:8000")
    federation = issue(out, list(requests.values()), wishes)
    assert federation.address == "fedlap.example.org:443"
    assert "--host 127.0.0.1 --port 8000" in (out / "superlink" / "start.sh").read_text()
    assert issue(out, [], Wishes()).listen == ("127.0.0.1", 8000)
