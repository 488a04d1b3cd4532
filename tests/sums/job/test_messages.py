import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import pack, pack_named, unpack, unpack_named
from fedlap_app.sums.job.messages import HelloReply, Request


@given(st.lists(st.binary(max_size=40)))
def test_parts_come_back(parts):
    packed = pack(*parts)
    assert [bytes(part) for part in unpack(packed)] == parts
    assert len(packed) % 8 == 0


def test_names_come_back_and_are_unique():
    named = {"": b"small", "bank-b": b""}
    assert {n: bytes(d) for n, d in unpack_named(pack_named(named)).items()} == named
    with pytest.raises(ProtocolError, match="twice"):
        unpack_named(pack(b"a", b"1", b"a", b"2"))
    with pytest.raises(ProtocolError, match="not a text"):
        unpack_named(pack(b"\xff", b"1"))


@pytest.mark.parametrize("cut", [1, 7, 9, 17])
def test_a_cut_message_is_refused(cut):
    with pytest.raises(ProtocolError, match="ends inside a part"):
        unpack(pack(b"0123456789", b"abc")[: -8 - cut])


def test_a_wrong_number_of_parts_is_refused():
    with pytest.raises(ProtocolError, match="2 parts where 3"):
        unpack(pack(b"a", b"b"), 3)


def test_the_digest_covers_everything():
    base = Request("sums", "ab", 3, b"common", b"own")
    others = [
        Request("share", "ab", 3, b"common", b"own"),
        Request("sums", "ac", 3, b"common", b"own"),
        Request("sums", "ab", 4, b"common", b"own"),
        Request("sums", "ab", 3, b"commono", b"wn"),
    ]
    assert len({request.digest() for request in (base, *others)}) == 5


def test_hello_replies_come_back():
    reply = HelloReply(b"card", (("j1", "m1"),), (("j2", "m2"), ("j3", "m3")), True)
    assert HelloReply.unpack(reply.pack()) == reply


def test_bytes_that_fill_up_are_zeros():
    packed = bytearray(pack(b"abc", b"12345678"))
    packed[11] = 1
    with pytest.raises(ProtocolError, match="not filled up with zeros"):
        unpack(bytes(packed))


@pytest.mark.parametrize(
    ("kind", "job", "step"),
    [("cards", "ab", 1), ("pairs", "ab", 0), ("sums", "ab", 1), ("hello", "ab", 0), ("x", "ab", 0)],
)
def test_a_request_that_cannot_come(kind, job, step):
    with pytest.raises(ProtocolError, match="A message asks for"):
        Request(kind, job, step).require_possible()
