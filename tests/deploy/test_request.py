import json
import stat

import pytest

import fedlap_app
from fedlap_app.deploy.coordinator import Wishes, issue
from fedlap_app.deploy.folders import start_commands
from fedlap_app.deploy.organisation import make_request, place_of
from fedlap_app.deploy.request import read_request, sign_request
from fedlap_app.deploy.supernode_key import private_to_public
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.folder import read_folder
from fedlap_app.graphs.schema import schema_digest
from fedlap_app.sums.identity import Identity


def test_the_request_says_who_it_is_and_nothing_secret(places):
    place = places["bank-01"]
    made = make_request(place, "bank-01")
    text = (place.out / "request.json").read_text()
    facts = json.loads(text)
    identity = Identity.load(place.identity)
    assert facts["name"] == "bank-01"
    assert facts["fingerprint"] == identity.fingerprint
    assert facts["version"] == fedlap_app.__version__
    assert facts["schema"] == schema_digest(read_folder(place.data))
    assert facts["supernode_key"] in (place.out / "keys" / "supernode.pub").read_text()
    for secret in (identity.signing_key, identity.agreement_key):
        assert secret.hex() not in text
    assert str(place.data) not in text
    assert read_request(place.out / "request.json") == made


def test_secrets_are_for_their_owner_only(places):
    place = places["bank-00"]
    make_request(place)
    secret = [place.out / "keys" / "supernode", place.out / "keys" / "superexec-secret"]
    for path in (*secret, place.identity, place.store / "offline" / "secret"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((place.out / "keys").stat().st_mode) == 0o700


def test_a_second_request_keeps_the_keys_and_renew_makes_others(places):
    place = places["bank-00"]
    first = make_request(place)
    assert make_request(place) == first
    renewed = make_request(place, renew=True)
    assert renewed.fingerprint != first.fingerprint
    assert renewed.supernode_key != first.supernode_key
    assert Identity.load(place.identity.with_name("identity.previous")).fingerprint == (
        first.fingerprint
    )
    assert make_request(place) == renewed


def test_the_name_must_be_that_of_the_folder(places):
    with pytest.raises(ConfigError, match=r"--name 'bank-x' but .*org.toml says 'bank-00'"):
        make_request(places["bank-00"], "bank-x")
    assert not places["bank-00"].out.exists()


def test_a_store_elsewhere_and_a_path_with_a_quote(places, tmp_path):
    data = places["bank-00"].data
    place = place_of(data, tmp_path / "k", tmp_path / "elsewhere")
    make_request(place)
    assert (tmp_path / "elsewhere" / "offline" / "identity").is_file()
    assert (
        f"FEDLAP_ORG_STORE='{tmp_path}/elsewhere'" in (place.out / "organisation.env").read_text()
    )
    with pytest.raises(ConfigError, match="has a quote"):
        place_of(data, tmp_path / "it's")


@pytest.mark.parametrize("key", ["name", "supernode_key", "schema", "version", "fingerprint"])
def test_an_altered_request_is_refused(requests, places, key):
    path = places["bank-00"].out / "request.json"
    facts = json.loads(path.read_text())
    facts[key] = requests["bank-01"].supernode_key if key == "supernode_key" else "other"
    path.write_text(json.dumps(facts))
    with pytest.raises(ConfigError, match=r"was altered after"):
        read_request(path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"form": "fedlap request 1"}', "\x00", "[" * 100_000]
)
def test_another_file_is_no_request(tmp_path, content):
    path = tmp_path / "request.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match="is no request of this version"):
        read_request(path)
    with pytest.raises(ConfigError, match="There is no"):
        read_request(tmp_path / "none.json")


def signed_with(place, supernode_key, schema=None):
    """A request that the organisation signed itself, whatever the key looks like."""
    identity = Identity.load(place.identity)
    schema = schema or schema_digest(read_folder(place.data))
    made = sign_request(identity, read_folder(place.data).name, supernode_key, schema)
    path = place.out / "request.json"
    path.write_text(made.to_json())
    return path


@pytest.mark.parametrize("more", [" odd\x7fcomment", " another comment", "\n"])
def test_the_comment_of_a_key_is_left_behind(requests, places, more):
    plain = requests["bank-00"].supernode_key
    path = signed_with(places["bank-00"], plain + more)
    assert read_request(path).supernode_key == plain


def test_a_key_with_another_comment_is_the_same_key(requests, places, tmp_path):
    key = requests["bank-00"].supernode_key
    paths = [places["bank-00"].out / "request.json", signed_with(places["bank-01"], f"{key} other")]
    with pytest.raises(ConfigError, match="have the same SuperNode key"):
        issue(
            tmp_path / "c",
            [read_request(path) for path in paths],
            Wishes(name="banks", servers=("a.org",)),
        )


def test_a_schema_is_a_hash(requests, places):
    path = signed_with(places["bank-00"], requests["bank-00"].supernode_key, schema="x\x7f")
    with pytest.raises(ConfigError, match="has no hash for a schema"):
        read_request(path)


def test_what_is_not_given_stays_as_the_last_request_left_it(places, tmp_path):
    data, out = places["bank-00"].data, tmp_path / "kq"
    first = make_request(place_of(data, out, tmp_path / "st", 9999))
    env = out / "organisation.env"
    env.write_text(env.read_text() + "\nFEDLAP_LOG=json\n")
    before = env.read_text()
    place = place_of(data, out)
    assert (place.store, place.port) == (tmp_path / "st", 9999)
    renewed = make_request(place, renew=True)
    assert renewed.fingerprint == Identity.load(tmp_path / "st/offline/identity").fingerprint
    assert renewed.fingerprint != first.fingerprint
    assert not (data / "store").exists()
    assert env.read_text() == before


def test_a_store_inside_the_data_moves_with_it(places, tmp_path):
    place = places["bank-00"]
    first = make_request(place)
    place.data.rename(tmp_path / "moved")
    moved = place_of(tmp_path / "moved", place.out)
    assert moved.store == tmp_path / "moved" / "store"
    assert make_request(moved) == first


def test_the_environment_file_must_be_readable(places):
    place = places["bank-00"]
    make_request(place)
    for content, sentence in (
        (b"FEDLAP_NODE_PORT=x\n", "write a port"),
        (b"A='b\n", "without its other half"),
        (b"\xff\n", "is not UTF-8"),
    ):
        (place.out / "organisation.env").write_bytes(content)
        with pytest.raises(ConfigError, match=sentence):
            place_of(place.data, place.out)


def test_folders_of_another_organisation_are_refused(places, requests, tmp_path):
    one, two = places["bank-01"], places["bank-02"]
    kept = {path: path.read_bytes() for path in one.out.rglob("*") if path.is_file()}
    sentence = "belongs to 'bank-01' and this request is from 'bank-02'"
    with pytest.raises(ConfigError, match=f"--out .*{sentence}"):
        make_request(place_of(two.data, one.out, two.store))
    (one.out / "request.json").unlink()
    with pytest.raises(ConfigError, match=f"--out .*{sentence}"):
        make_request(place_of(two.data, one.out, two.store))
    with pytest.raises(ConfigError, match=f"--store .*{sentence}"):
        make_request(place_of(two.data, tmp_path / "new", one.store))
    (one.store / "offline" / "organisation").unlink()
    with pytest.raises(ConfigError, match=f"--store .*{sentence}"):
        make_request(place_of(two.data, tmp_path / "new", one.store))
    assert not (tmp_path / "new").exists()
    for path, content in kept.items():
        assert path.name == "request.json" or path.read_bytes() == content


def test_every_set_of_old_keys_stays(places):
    place = places["bank-00"]
    made = [make_request(place), *(make_request(place, renew=True) for _ in range(3))]
    endings = (".previous", ".previous-2", ".previous-3", "")
    for request, ending in zip(made, endings, strict=True):
        identity = place.identity.with_name(f"identity{ending}")
        assert Identity.load(identity).fingerprint == request.fingerprint
        key = place.out / "keys" / f"supernode{ending}"
        assert private_to_public(key) == request.supernode_key
    secrets = {(place.out / f"keys/superexec-secret{each}").read_bytes() for each in endings}
    assert len(secrets) == 4


def test_the_folders_that_containers_write_into_are_there(places):
    place = places["bank-00"]
    make_request(place)
    for name in ("state", "state/supernode", "state/superexec"):
        assert stat.S_IMODE((place.out / name).stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["ü" * 64, "a\u200bb", "a\u3164b", "a`b"])
def test_a_name_of_an_organisation_that_is_refused(places, name):
    place = places["bank-00"]
    text = (place.data / "org.toml").read_text()
    (place.data / "org.toml").write_text(text.replace("bank-00", name))
    with pytest.raises(DataError, match="The organisation name"):
        make_request(place)
    assert not place.out.exists()


@pytest.mark.parametrize("name", ["../bank", "a\u202eb", "a\nb", "a`b", "\ud800", "ü" * 51])
def test_a_request_with_a_name_that_cannot_be_used(requests, places, name):
    path = places["bank-00"].out / "request.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"name": name}))
    with pytest.raises(ConfigError, match=r"is refused: The organisation name") as caught:
        read_request(path)
    assert len(str(caught.value).splitlines()) == 1


def test_the_start_commands_come_from_the_organisations_own_package(places):
    place = places["bank-00"]
    made = make_request(place)
    for name, content in start_commands("bank-00").items():
        assert (place.out / name).read_text() == content
        assert bool((place.out / name).stat().st_mode & 0o111) == name.endswith(".sh")
    assert made.fingerprint in (place.out / "README.md").read_text()
    (place.out / "start.sh").write_text("#!/bin/sh\n# of an older version\n")
    assert make_request(place) == made
    assert (place.out / "start.sh").read_text() == start_commands("bank-00")["start.sh"]
