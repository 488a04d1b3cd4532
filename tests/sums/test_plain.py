import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.header import Header, Place

PLACE = Place("krylov", 1)

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")


@pytest.fixture
def members(rings):
    return [make_backend("plain", ring) for ring in rings(5)]


@pytest.fixture
def sealed(members):
    values = np.random.default_rng(0).normal(size=(5, 5000))
    header = members[0].small_header(PLACE, length=5000)
    return values, header, [m.seal(v, header) for m, v in zip(members, values, strict=True)]


def add(header, members, contributions):
    accumulator = make_accumulator(header, members[0].senders)
    for contribution in contributions:
        accumulator.add(contribution)
    return accumulator.result(header.recipient)


def test_it_warns(rings):
    with pytest.warns(InsecureWarning, match="protects nothing"):
        backend = make_backend("plain", rings(5)[0])
    assert "protects nothing" in backend.weakness


def test_sum_is_that_of_numpy_in_any_order_of_arrival(members, sealed):
    values, header, contributions = sealed
    expected = ((((values[0] + values[1]) + values[2]) + values[3]) + values[4]).tobytes()
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        data = add(header, members, [contributions[i] for i in order])
        assert members[3].open(data, header).numbers.tobytes() == expected


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(members, bad):
    header = members[0].small_header(PLACE, length=2)
    with pytest.raises(ProtocolError, match="not finite"):
        members[0].seal([0.0, bad], header)


def test_a_visible_change_is_found(members, sealed):
    _, header, contributions = sealed
    data = bytearray(add(header, members, contributions))
    data[-8 * 100 + 6] ^= 1
    with pytest.raises(ProtocolError, match="altered"):
        members[0].open(bytes(data), header)


@pytest.mark.parametrize(("sign", "reason"), [(-1, "too few"), (1, "too many")])
def test_dropped_and_doubled_contributions_are_counted(members, sealed, sign, reason):
    _, header, contributions = sealed
    data, one = add(header, members, contributions), contributions[0]
    total, part = (np.frombuffer(x, "<f8", offset=Header.unpack(x)[1]) for x in (data, one))
    forged = header.pack() + (total + sign * part).tobytes()
    with pytest.raises(ProtocolError, match=reason):
        members[0].open(forged, header)


def test_tiny_and_huge_values_pass_together(members):
    values = np.random.default_rng(1).normal(size=(5, 3000)) * 10.0 ** np.arange(-150, 150, 0.1)
    header = members[0].small_header(PLACE, length=3000)
    sealed = [m.seal(v, header) for m, v in zip(members, values, strict=True)]
    opened = members[1].open(add(header, members, sealed), header).numbers
    np.testing.assert_allclose(opened, values.sum(axis=0), rtol=1e-12)
