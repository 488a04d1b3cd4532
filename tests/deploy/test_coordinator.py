import shutil
import stat
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fedlap_app.deploy.certificates import (
    certificate_fingerprint,
    is_issued_by,
    make_server,
    names_of,
    read_certificate,
    read_pair,
)
from fedlap_app.deploy.coordinator import Wishes, issue, warnings
from fedlap_app.deploy.organisation import make_request
from fedlap_app.errors import ConfigError
from fedlap_app.privacy.federation import read_federation_file

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


def test_an_organisation_gets_two_files_of_data_and_no_secret(out, federation):
    folder = out / "organisations" / "bank-01"
    assert files_of(folder) == {"ca.crt", "federation.toml"}
    assert not any(path.stat().st_mode & 0o111 for path in folder.iterdir())
    text = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert "PRIVATE" not in text
    assert 'address = "fedlap.example.org:8000"' in text


def test_what_an_older_version_wrote_for_an_organisation_goes(out, federation):
    old = out / "organisations" / "bank-01" / "start.sh"
    old.write_text("#!/bin/sh\n")
    issue(out, [], Wishes())
    assert not old.exists()


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


def bytes_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_members_come_and_go_while_the_authoritys_key_is_away(out, requests):
    one, two, three = (requests[name] for name in sorted(requests))
    issue(out, [one, two], NEW)
    certificates = [out / "ca" / "ca.crt", out / "superlink" / "ca.crt"]
    before = [path.read_bytes() for path in certificates]
    (out / "ca" / "ca.key").unlink()
    assert "bank-02" in issue(out, [three], Wishes()).pins
    assert "bank-00" not in issue(out, [], Wishes(remove=("bank-00",))).pins
    assert [path.read_bytes() for path in certificates] == before
    shutil.rmtree(out / "ca")
    federation = issue(out, [one], Wishes())
    authority = read_certificate(out / "organisations" / "bank-00" / "ca.crt")
    assert certificate_fingerprint(authority) == federation.authority
    assert is_issued_by(read_certificate(out / "superlink" / "server.crt"), authority)


@pytest.mark.parametrize("wishes", [Wishes(renew=True), Wishes(servers=("other.example.org",))])
def test_only_a_new_certificate_needs_the_authoritys_key(out, federation, wishes, tmp_path):
    key = out / "ca" / "ca.key"
    key.rename(tmp_path / "ca.key")
    before = bytes_of(out)
    with pytest.raises(ConfigError, match=r"bring ca/ca.key back"):
        issue(out, [], wishes)
    assert bytes_of(out) == before
    (tmp_path / "ca.key").rename(key)
    assert issue(out, [], wishes).authority == federation.authority


def test_an_expired_certificate_needs_the_authoritys_key(out, federation, tmp_path):
    files = out / "superlink" / "server.crt", out / "superlink" / "server.key"
    authority = read_pair(out / "ca" / "ca.crt", out / "ca" / "ca.key")
    make_server(authority, "banks", names_of(read_certificate(files[0])), -1).save(*files)
    (out / "ca" / "ca.key").rename(tmp_path / "ca.key")
    with pytest.raises(ConfigError, match=r"has expired .* bring ca/ca.key back"):
        issue(out, [], Wishes())
    (tmp_path / "ca.key").rename(out / "ca" / "ca.key")
    assert issue(out, [], Wishes()).certificate_expires > datetime.now(UTC)


def test_a_folder_with_a_federation_never_gets_a_new_authority(out, federation):
    shutil.rmtree(out / "ca")
    (out / "superlink" / "ca.crt").unlink()
    before = bytes_of(out)
    for wishes in (Wishes(), Wishes(renew=True)):
        with pytest.raises(ConfigError, match="its authority is gone"):
            issue(out, [], wishes)
    assert bytes_of(out) == before


def test_days_are_those_of_a_new_certificate_only(out, federation):
    again = issue(out, [], Wishes(days=3650))
    assert again.authority == federation.authority
    assert again.certificate_expires == federation.certificate_expires


def test_another_public_port_leaves_the_listening_address(out, requests):
    given = list(requests.values())
    issue(out, given, replace(NEW, port=8443, listen="127.0.0.1:8000"))
    moved = issue(out, [], Wishes(port=9443))
    assert (moved.port, moved.listen) == (9443, ("127.0.0.1", 8000))


def test_without_a_proxy_the_superlink_follows_the_public_port(out, federation):
    moved = issue(out, [], Wishes(port=9443))
    assert (moved.port, moved.listen) == (9443, ("0.0.0.0", 9443))


def test_a_proxy_and_the_superlink_behind_it_need_two_ports(out, requests):
    given = list(requests.values())
    with pytest.raises(ConfigError, match="the two collide"):
        issue(out, given, replace(NEW, port=8443, listen="127.0.0.1:8443"))
    assert not out.exists()
    issue(out, given, replace(NEW, port=8443, listen="127.0.0.1:8000"))
    with pytest.raises(ConfigError, match="the two collide"):
        issue(out, [], Wishes(port=8000))
    with pytest.raises(ConfigError, match="is not ADDRESS:PORT"):
        issue(out, [], Wishes(listen=""))


def test_an_ipv6_server_is_listened_for(out, requests):
    given = list(requests.values())
    assert issue(out, given, replace(NEW, servers=("2001:db8::7",))).listen == ("::", 8000)
    assert "--host :: --port 8000" in (out / "superlink" / "start.sh").read_text()
    proxy = (out / "superlink" / "nginx.conf").read_text().splitlines()
    assert {"    listen 8000 ssl;", "    listen [::]:8000 ssl;"} <= set(proxy)


def test_what_the_coordinator_is_warned_of(out, federation, places):
    (open_port,) = warnings(None, federation)
    assert "0.0.0.0:8000: whoever reaches that port can submit runs" in open_port
    behind = issue(out, [], Wishes(port=8443, listen="127.0.0.1:8000"))
    assert warnings(federation, behind) == []
    renewed = make_request(places["bank-00"], renew=True)
    after = issue(out, [renewed], Wishes(replace=True, remove=("bank-02",)))
    replaced, removed = warnings(behind, after)
    assert "run unregister.sh bank-00 first" in replaced
    assert "run unregister.sh bank-02 first" in removed


@pytest.mark.parametrize("other", ["Bank-01", "bank\ufe6301", "\uff42ank-01"])
def test_two_members_whose_names_look_alike_are_refused(out, requests, other):
    given = [replace(requests["bank-00"], name=other), requests["bank-01"]]
    with pytest.raises(ConfigError, match="look alike"):
        issue(out, given, NEW)
    assert not out.exists()


@pytest.mark.parametrize("name", ["ü" * 60, "a\u200bb", "a\x07b", "a`b", "\u2028"])
def test_a_name_of_a_federation_that_is_refused(out, requests, name):
    with pytest.raises(ConfigError, match="--name"):
        issue(out, list(requests.values()), replace(NEW, name=name))
    assert not out.exists()


@pytest.mark.parametrize("name", ["ü" * 50, "a" + "ü" * 49, "x" * 100])
def test_a_long_name_fits_into_the_certificates(out, requests, name):
    assert issue(out, list(requests.values()), replace(NEW, name=name)).name == name


@pytest.mark.parametrize("odd", ["a'b", 'a"b', "a$b", "a\nb", "a\\b", "a`b", "a%b", "a&b", "a|b"])
def test_a_folder_that_scripts_and_the_proxy_could_not_name(tmp_path, requests, odd):
    with pytest.raises(ConfigError, match="The path"):
        issue(tmp_path / odd, list(requests.values()), NEW)
    assert not (tmp_path / odd).exists()


def test_what_the_administrator_added_to_the_environment_stays(out, federation):
    path = out / "superlink" / "coordinator.env"
    path.write_text(path.read_text() + "# ours\nFEDLAP_LOG=json\n")
    before = path.read_text()
    issue(out, [], Wishes())
    assert path.read_text() == before
