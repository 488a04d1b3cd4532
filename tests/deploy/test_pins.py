import pytest
from flwr.app import Context, RecordDict

from fedlap_app.deploy.coordinator import Wishes, issue
from fedlap_app.errors import ConfigError
from fedlap_app.flower.client.offline import _known, secrets_of
from fedlap_app.flower.client.organisation import organisation_of
from fedlap_app.privacy.pins import merge_pins
from fedlap_app.settings import Settings


@pytest.fixture
def federation(tmp_path, requests):
    return issue(tmp_path / "c", list(requests.values()), Wishes(name="b", servers=("a.org",)))


def client(place, settings, **config):
    node = {"data-dir": str(place.data), **config}
    return organisation_of(Context(1, 1, node, RecordDict(), settings.to_config()))


@pytest.mark.parametrize("way", ["node-config", "beside org.toml"])
def test_a_client_pins_what_the_federation_file_says(tmp_path, places, federation, way):
    place, config = places["bank-01"], {}
    if way == "node-config":
        config["federation"] = str(tmp_path / "c" / "federation.toml")
    else:
        (place.data / "federation.toml").write_text(federation.to_toml())
    secrets, pinned = _known(client(place, Settings(), **config))
    assert dict(secrets.pins) == federation.pins
    assert pinned == frozenset()  # these are the coordinator's, not its own
    assert secrets.trust is False


def test_a_changed_identity_or_a_stranger_is_refused(tmp_path, places, federation):
    file = str(tmp_path / "c" / "federation.toml")
    place = places["bank-01"]
    place.identity.unlink()
    with pytest.raises(ConfigError, match=r"pins the fingerprint .* for bank-01 but the identity"):
        secrets_of(client(place, Settings(), federation=file))
    issue(tmp_path / "c", [], Wishes(remove=("bank-02",)))
    with pytest.raises(ConfigError, match="'bank-02' is not a member of the federation 'b'"):
        secrets_of(client(places["bank-02"], Settings(), federation=file))


def test_a_missing_or_damaged_file_is_refused_without_its_path(tmp_path, places, requests):
    file = tmp_path / "secret-folder" / "federation.toml"
    with pytest.raises(ConfigError, match=r"There is no federation\.toml"):
        secrets_of(client(places["bank-01"], Settings(), federation=str(file)))
    file.parent.mkdir()
    file.write_text("name = 3\n")
    with pytest.raises(ConfigError, match=r"federation\.toml cannot be read") as caught:
        secrets_of(client(places["bank-01"], Settings(), federation=str(file)))
    assert "secret-folder" not in str(caught.value)


def test_contradicting_pins_are_refused():
    assert merge_pins({"a": "1"}, {"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert merge_pins({"c": "3"}, {"b": "2"}) == {"b": "2", "c": "3"}
    with pytest.raises(ConfigError, match=r"org.toml pins the fingerprint 1 for a and .* 2"):
        merge_pins({"a": "1"}, {"a": "2"})
