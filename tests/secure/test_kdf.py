import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.kdf import decode, derive, encode


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_encoding_gives_the_parts_back(parts):
    assert list(decode(encode(*parts))) == parts


def test_encoding_keeps_the_bounds_of_parts():
    assert encode("ab", "c") != encode("a", "bc")


def test_bytes_that_end_inside_a_part_are_refused():
    with pytest.raises(ProtocolError, match="ends inside a part"):
        list(decode(encode(b"abc")[:-1]))


def test_keys_for_different_purposes_differ():
    keys = {derive(b"s" * 32, "a"), derive(b"s" * 32, "b"), derive(b"s" * 32, "a", "b")}
    assert len(keys) == 3
    assert len(derive(b"s" * 32, "a", length=64)) == 64
