import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.privacy.policy import BACKENDS
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.header import Header, Place

PLACE = Place("krylov", 0)

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")


@pytest.fixture(params=BACKENDS)
def members(request, rings):
    return [make_backend(request.param, ring) for ring in rings(3)]


def assert_sum(member, opened, expected):
    """Exact, but for the noise of ciphertexts."""
    np.testing.assert_allclose(
        opened.numbers, expected, rtol=0, atol=1e-8 if member.name == "ckks" else 0
    )


@pytest.fixture
def header(members):
    return members[0].small_header(PLACE, length=4)


@pytest.fixture
def sealed(members, header):
    return [member.seal(np.arange(4.0), header) for member in members]


def test_a_sum_through_the_server(members, header, sealed):
    accumulator = make_accumulator(header, members[0].senders)
    for contribution in sealed:
        accumulator.add(contribution)
    for member in members:
        opened = member.open(accumulator.result(""), header)
        assert_sum(member, opened, [0.0, 3.0, 6.0, 9.0])


def test_an_empty_vector_has_an_empty_sum(members):
    header = members[0].small_header(PLACE, length=0)
    accumulator = make_accumulator(header, members[0].senders)
    for member in members:
        accumulator.add(member.seal([], header))
    assert len(members[1].open(accumulator.result(""), header)) == 0


def test_a_second_contribution_of_one_sender_is_refused(members, header, sealed):
    accumulator = make_accumulator(header, members[0].senders)
    accumulator.add(sealed[1])
    with pytest.raises(ProtocolError, match="'client-01' has contributed"):
        accumulator.add(sealed[1])
    assert accumulator.missing("") == ("client-00", "client-02")


def test_no_sum_before_all_contributed(members, header, sealed):
    accumulator = make_accumulator(header, members[0].senders)
    accumulator.add(sealed[1])
    with pytest.raises(ProtocolError, match="lacks client-00, client-02"):
        accumulator.result("")


def test_a_stranger_is_refused(members, header, sealed):
    accumulator = make_accumulator(header, members[0].senders)
    stranger = header.of("client-77").pack() + sealed[0][len(header.of("client-00").pack()) :]
    with pytest.raises(ProtocolError, match="'client-77' does not contribute"):
        accumulator.add(stranger)
    with pytest.raises(ProtocolError, match="does not begin with a header"):
        accumulator.add(b"junk")


@pytest.mark.parametrize("change", [lambda d: d[:-8], lambda d: d + bytes(8), lambda d: d[:-1]])
def test_a_contribution_of_another_length_is_refused_and_may_come_again(
    members, header, sealed, change
):
    accumulator = make_accumulator(header, members[0].senders)
    with pytest.raises(ProtocolError, match="cut or altered"):
        accumulator.add(change(sealed[0]))
    for contribution in sealed:
        accumulator.add(contribution)
    members[0].open(accumulator.result(""), header)


def test_a_sum_needs_as_many_senders_as_its_header_says(header):
    with pytest.raises(ProtocolError, match="3 contributions cannot be made by 1"):
        make_accumulator(header, lambda recipient: ["client-00"])


def test_a_header_of_another_job_is_not_sealed(rings, members):
    theirs = make_backend(members[0].name, rings(3, b"another seed of 16")[0])
    with pytest.raises(ProtocolError, match="says job ="):
        members[0].seal(np.zeros(4), theirs.small_header(PLACE, length=4))


def seal_step(member, values, vectors=0, context=b""):
    """All that a member contributes in one step."""
    lengths = {name: each.size for name, each in values.items()}
    sheet = member.sheet(lengths, PLACE, vectors)
    for name, each in values.items():
        sheet.rooms[name][:] = each
    return b"".join(member.seal_sheet(sheet, context=context))


def test_all_sums_of_a_step_travel_together(members):
    """Each member contributes to everyone's sum and to the sum of every other one."""
    names = [member.keys.me for member in members]
    accumulator = None
    for number, member in enumerate(members):
        values = {"": np.full(4, 10.0**number)}
        values |= {name: np.full(7, 10.0**number) for name in names if name != names[number]}
        data = seal_step(member, values, vectors=5, context=b"x")
        accumulator = accumulator or make_accumulator(Header.unpack(data)[0], member.senders)
        assert accumulator.add(data) == names[number]
    for number, member in enumerate(members):
        header = member.small_header(PLACE, length=4, vectors=5)
        opened = member.open(accumulator.result(""), header, context=b"x")
        assert_sum(member, opened, [111.0] * 4)
        header = member.block_header(names[number], PLACE, length=7, vectors=5)
        opened = member.open(accumulator.result(names[number]), header, context=b"x")
        assert_sum(member, opened, [111.0 - 10.0**number] * 7)


def test_a_sum_that_is_listed_otherwise_is_refused(members):
    names = [member.keys.me for member in members]
    first = seal_step(members[0], {"": np.zeros(4), names[2]: np.zeros(7)})
    accumulator = make_accumulator(Header.unpack(first)[0], members[0].senders)
    accumulator.add(first)
    with pytest.raises(ProtocolError, match="says length = 8 where 7 was expected"):
        accumulator.add(seal_step(members[1], {names[2]: np.zeros(8)}))
    assert accumulator.missing(names[2]) == (names[1],)
    with pytest.raises(ProtocolError, match=f"lacks {names[1]}"):
        accumulator.result(names[2])
    assert accumulator.result(names[0]) == b""


def test_a_sum_that_is_listed_twice_is_refused(members, header, sealed):
    accumulator = make_accumulator(header, members[0].senders)
    found, size = Header.unpack(sealed[0])
    twice = found._replace(sums=found.sums * 2).pack() + 2 * sealed[0][size:]
    with pytest.raises(ProtocolError, match="lists a sum twice"):
        accumulator.add(twice)


def test_two_members_are_warned(rings):
    with pytest.warns(InsecureWarning, match="two members"):
        make_backend("mask", rings(2)[0])
    assert not make_backend("mask", rings(3)[0]).weakness


def test_a_single_sender_is_warned_of(rings):
    with pytest.warns(InsecureWarning, match="1 members get block sums from a single sender"):
        backend = make_backend("mask", rings(4)[0], senders={"client-01": ["client-02"]})
    assert "single sender" in backend.weakness
