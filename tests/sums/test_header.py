import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Header, Sum, require_equal

NAMES = st.text("abé-\u20ac0", max_size=20)


def header(**changes):
    base = Header(
        backend="mask",
        profile="q44",
        job="01" * 16,
        members="02" * 16,
        key_id="03" * 8,
        phase="krylov",
        step=4,
        attempt=1,
        vectors=40,
        sums=(Sum("client-02", 4096, 9),),
        sender="client-01",
    )
    this = {name: changes.pop(name) for name in Sum._fields if name in changes}
    return base._replace(sums=(base.sums[0]._replace(**this),), **changes)


@given(NAMES, NAMES, st.integers(0, 2**32 - 1), st.integers(0, 2**48 - 1), st.binary(max_size=9))
def test_round_trip_with_anything_behind(sender, phase, step, length, rest):
    one = header(sender=sender, phase=phase, step=step, length=length)
    packed = one.pack()
    assert len(packed) % 8 == 0
    assert Header.unpack(packed + rest) == (one, len(packed))


@given(st.lists(st.tuples(NAMES, st.integers(0, 2**48 - 1), st.integers(0, 2**16 - 1)), max_size=9))
def test_any_list_of_sums_comes_back(sums):
    one = header()._replace(sums=tuple(Sum(*each) for each in sums))
    assert Header.unpack(one.pack() + b"behind") == (one, len(one.pack()))


def test_another_number_of_sums_is_named():
    with pytest.raises(ProtocolError, match="says sums ="):
        require_equal(header()._replace(sums=()), header())


def test_a_header_is_small():
    assert len(header().pack()) <= 120


def test_no_byte_can_change_without_notice():
    packed = header().pack()
    for position in range(len(packed)):
        bad = bytearray(packed)
        bad[position] ^= 1
        try:
            found, _ = Header.unpack(bytes(bad))
        except ProtocolError:
            continue
        with pytest.raises(ProtocolError, match="was expected"):
            require_equal(found, header())


@pytest.mark.parametrize("data", [b"", b"FLS", bytes(200), b"FLS\x02" + b"\xff" * 200])
def test_junk_is_no_header(data):
    with pytest.raises(ProtocolError, match="does not begin with a header"):
        Header.unpack(data)


def test_another_version_is_named():
    packed = bytearray(header().pack())
    packed[3] = 1
    with pytest.raises(ProtocolError, match="format version 1"):
        Header.unpack(bytes(packed))


FIELDS = [*Sum._fields, *(name for name in Header._fields if name not in ("version", "sums"))]


@pytest.mark.parametrize("name", FIELDS)
def test_a_difference_is_named(name):
    values = {int: 5, str: "77" * (8 if name == "key_id" else 16)}
    other = header(**{name: values[type(getattr(header(), name))]})
    with pytest.raises(ProtocolError, match=f"says {name} ="):
        require_equal(other, header())


@pytest.mark.parametrize(
    ("name", "value"),
    [("step", -1), ("attempt", 2**16), ("job", "xy"), ("key_id", "03"), ("sender", "é" * 128)],
)
def test_what_cannot_be_packed_is_refused(name, value):
    with pytest.raises(ProtocolError, match=f"field {name}"):
        header(**{name: value}).pack()
