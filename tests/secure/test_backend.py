import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.secure.backend import InsecureWarning
from fedlap_app.secure.choice import BACKENDS, make_accumulator, make_backend
from fedlap_app.secure.header import Place

PLACE = Place("krylov", 0)

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.secure.backend.InsecureWarning")


@pytest.fixture(params=BACKENDS)
def members(request, rings):
    return [make_backend(request.param, ring) for ring in rings(3)]


@pytest.fixture
def header(members):
    return members[0].small_header(PLACE, length=4)


@pytest.fixture
def sealed(members, header):
    return [member.seal(np.arange(4.0), header) for member in members]


def test_a_sum_through_the_server(members, header, sealed):
    accumulator = make_accumulator(header, members[0].keys.members)
    for contribution in sealed:
        accumulator.add(contribution)
    for member in members:
        opened = member.open(accumulator.result(), header)
        np.testing.assert_array_equal(opened.numbers, [0.0, 3.0, 6.0, 9.0])


def test_an_empty_vector_has_an_empty_sum(members):
    header = members[0].small_header(PLACE, length=0)
    accumulator = make_accumulator(header, members[0].keys.members)
    for member in members:
        accumulator.add(member.seal([], header))
    assert len(members[1].open(accumulator.result(), header)) == 0


def test_a_second_contribution_of_one_sender_is_refused(members, header, sealed):
    accumulator = make_accumulator(header, members[0].keys.members)
    accumulator.add(sealed[1])
    with pytest.raises(ProtocolError, match="'client-01' has contributed"):
        accumulator.add(sealed[1])
    assert accumulator.missing == ("client-00", "client-02")


def test_no_sum_before_all_contributed(members, header, sealed):
    accumulator = make_accumulator(header, members[0].keys.members)
    accumulator.add(sealed[1])
    with pytest.raises(ProtocolError, match="lacks client-00, client-02"):
        accumulator.result()


def test_a_stranger_is_refused(members, header, sealed):
    accumulator = make_accumulator(header, members[0].keys.members)
    stranger = header.of("client-77").pack() + sealed[0][len(header.of("client-00").pack()) :]
    with pytest.raises(ProtocolError, match="'client-77' does not contribute"):
        accumulator.add(stranger)
    with pytest.raises(ProtocolError, match="does not begin with a header"):
        accumulator.add(b"junk")


@pytest.mark.parametrize("change", [lambda d: d[:-8], lambda d: d + bytes(8), lambda d: d[:-1]])
def test_a_contribution_of_another_length_is_refused_and_may_come_again(
    members, header, sealed, change
):
    accumulator = make_accumulator(header, members[0].keys.members)
    with pytest.raises(ProtocolError, match="cut or altered"):
        accumulator.add(change(sealed[0]))
    for contribution in sealed:
        accumulator.add(contribution)
    members[0].open(accumulator.result(), header)


def test_a_sum_needs_as_many_senders_as_its_header_says(header):
    with pytest.raises(ProtocolError, match="3 contributions cannot be made by 1"):
        make_accumulator(header, ["client-00"])


def test_a_header_of_another_job_is_not_sealed(rings, members):
    theirs = make_backend(members[0].name, rings(3, b"another seed of 16")[0])
    with pytest.raises(ProtocolError, match="says job ="):
        members[0].seal(np.zeros(4), theirs.small_header(PLACE, length=4))


def test_two_members_are_warned(rings):
    with pytest.warns(InsecureWarning, match="two members"):
        make_backend("mask", rings(2)[0])
    assert not make_backend("mask", rings(3)[0]).weakness


def test_a_single_sender_is_warned_of(rings):
    with pytest.warns(InsecureWarning, match="1 members get block sums from a single sender"):
        make_backend("mask", rings(4)[0], senders={"client-01": ["client-02"]})
