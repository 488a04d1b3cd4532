import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.privacy.addresses import (
    certificate_names,
    check_server_name,
    host_and_port,
    read_listen,
)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("FedLap.example.org.", "fedlap.example.org"),
        ("192.0.2.7", "192.0.2.7"),
        ("2001:DB8:0::7", "2001:db8::7"),
        ("superlink", "superlink"),
    ],
)
def test_names_and_addresses_in_their_usual_form(given, kept):
    assert check_server_name(given) == kept


@pytest.mark.parametrize(
    "given",
    [
        *("https://x.org", "x.org:8000", "*.x.org", "300.1.1.1", "", "a b", "münchen.de", "a..b"),
        "fe80::1%lo",
    ],
)
def test_what_is_neither_is_refused(given):
    with pytest.raises(ConfigError, match="neither a host name nor an address"):
        check_server_name(given)


@pytest.mark.parametrize("given", ["0.0.0.0", "::", "0:0::0", "224.0.0.1"])
def test_an_address_of_no_machine_is_refused(given):
    with pytest.raises(ConfigError, match="is no address of one machine"):
        check_server_name(given)


def test_the_own_machine_and_the_listening_address_are_covered():
    assert certificate_names(("a.org",), "0.0.0.0") == ("a.org", "localhost", "127.0.0.1", "::1")
    assert "192.0.2.7" in certificate_names(("a.org",), "192.0.2.7")


def test_addresses_with_ports():
    assert host_and_port("2001:db8::7", 8000) == "[2001:db8::7]:8000"
    assert read_listen("[::1]:8000") == ("::1", 8000)
    assert read_listen("127.0.0.1:81") == ("127.0.0.1", 81)
    for bad in (
        *("", "8000", "localhost:8000", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1:65536", "::1:80"),
        *("127.0.0.1:\u0668\u0660", "127.0.0.1:\u00b2", "[fe80::1%lo]:80", "127.0.0.1]:80"),
    ):
        with pytest.raises(ConfigError, match="is not ADDRESS:PORT"):
            read_listen(bad)
