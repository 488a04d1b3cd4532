import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.kdf import decode, derive, encode, hkdf


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_encoding_gives_the_parts_back(parts):
    assert list(decode(encode(*parts))) == parts


def test_encoding_keeps_the_bounds_of_parts():
    assert encode("ab", "c") != encode("a", "bc")


def test_bytes_that_end_inside_a_part_are_refused():
    with pytest.raises(ProtocolError, match="ends inside a part"):
        list(decode(encode(b"abc")[:-1]))


@pytest.mark.parametrize("length", [1, 16, 32, 33, 64, 100])
def test_derivation_is_that_of_rfc_5869(length):
    secret, salt, info = b"secret" * 5, b"salt", b"info"
    theirs = HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(secret)
    assert hkdf(secret, salt, info, length) == theirs
    unsalted = HKDF(
        algorithm=hashes.SHA256(), length=length, salt=None, info=encode("fedlap/1", "a", 7)
    )
    assert derive(secret, "a", 7, length=length) == unsalted.derive(secret)


def test_keys_for_different_purposes_differ():
    keys = {derive(b"s" * 32, "a"), derive(b"s" * 32, "b"), derive(b"s" * 32, "a", "b")}
    assert len(keys) == 3
    assert len(derive(b"s" * 32, "a", length=64)) == 64
