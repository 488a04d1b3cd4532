import tracemalloc

import numpy as np
import pytest
from scipy.stats import chisquare

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.header import Header, Place, Sum
from tests.sums.sums import add, sealed_by_all

PLACE = Place("krylov", 7)
SCALE = 2.0**44

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")


def backends(rings, count, **options):
    return [make_backend("mask", ring, **options) for ring in rings(count)]


def changed(header, field, value):
    """The same header with another value."""
    if field in Sum._fields:
        return header._replace(sums=(header.sums[0]._replace(**{field: value}),))
    return header._replace(**{field: value})


def body(data):
    """Numbers behind the header."""
    return np.frombuffer(data, "<u8", offset=Header.unpack(data)[1])


def with_body(data, words):
    return data[: Header.unpack(data)[1]] + words.tobytes()


def exact(values):
    """Sum of the rounded values in Python's own integers."""
    rounded = np.rint(values * SCALE)
    return [sum(int(x) for x in column) for column in rounded.T]


@pytest.mark.parametrize("count", [2, 3, 4, 10, 21, 22, 50])
def test_block_sums_are_exact(rings, count):
    members = backends(rings, count)
    values = np.random.default_rng(count).normal(size=(count, 33)) * 100
    for target in (0, count - 1):
        header = members[0].block_header(members[target].keys.me, PLACE, length=33)
        data = add(header, sealed_by_all(members, header, values))
        opened = members[target].open(data, header).numbers
        expected = exact(np.delete(values, target, axis=0))
        assert (opened * SCALE).tolist() == [float(x) for x in expected]


@pytest.mark.parametrize("count", [2, 3, 4, 10, 21, 22, 50])
def test_small_sums_are_exact_for_everyone(rings, count):
    members = backends(rings, count)
    values = np.random.default_rng(count).normal(size=(count, 33)) * 100
    header = members[0].small_header(PLACE, length=33)
    data = add(header, sealed_by_all(members, header, values))
    expected = [float(x) for x in exact(values)]
    for member in members:
        assert (member.open(data, header).numbers * SCALE).tolist() == expected


def test_sums_do_not_depend_on_the_order_of_arrival(rings):
    members = backends(rings, 6)
    values = np.random.default_rng(0).normal(size=(6, 9000))
    header = members[0].small_header(PLACE, length=9000)
    sealed = sealed_by_all(members, header, values)
    backwards = dict(reversed(sealed.items()))
    assert add(header, sealed) == add(header, backwards)


def test_only_the_named_senders_contribute_when_topology_is_shown(rings):
    senders = {"client-00": ("client-02", "client-04"), "client-01": ("client-03",)}
    members = backends(rings, 5, senders=senders)
    values = np.random.default_rng(0).normal(size=(5, 11))
    for target, others in ((0, [2, 4]), (1, [3])):
        header = members[0].block_header(members[target].keys.me, PLACE, length=11)
        assert header.contributors == len(others)
        data = add(header, sealed_by_all(members, header, values))
        opened = members[target].open(data, header).numbers
        assert (opened * SCALE).tolist() == [float(x) for x in exact(values[others])]
    with pytest.raises(ProtocolError, match="does not contribute"):
        members[1].seal(values[1], members[1].block_header("client-00", PLACE, length=11))


def p_value(data):
    """Chi-square test that the bytes are uniform."""
    counts = np.bincount(np.frombuffer(body(data).tobytes(), np.uint8), minlength=256)
    return chisquare(counts).pvalue


@pytest.mark.parametrize("count", [2, 3, 10, 30])
@pytest.mark.parametrize("values", [0.0, 1.0, -1e-9])
def test_contributions_and_sums_look_uniform_to_the_server(rings, count, values):
    members = backends(rings, count)
    vectors = np.full((count, 4000), values)
    for header in (
        members[0].small_header(PLACE, length=4000),
        members[0].block_header(members[-1].keys.me, PLACE, length=4000),
    ):
        sealed = sealed_by_all(members, header, vectors)
        seen = [*sealed.values(), add(header, sealed)]
        assert min(map(p_value, seen)) > 1e-6
        words = np.concatenate([body(data) for data in seen])
        # A block of two members has one contribution, which then is the sum.
        repeats = header.length + 3 if len(sealed) == 1 else 0
        assert np.unique(words).size == words.size - repeats


def test_no_plaintext_value_is_in_what_the_server_sees(rings):
    members = backends(rings, 4)
    values = np.random.default_rng(0).normal(size=(4, 500))
    header = members[0].small_header(PLACE, length=500)
    sealed = sealed_by_all(members, header, values)
    total = values.sum(axis=0)
    for data in (*sealed.values(), add(header, sealed)):
        words = set(body(data).tolist())
        for plain in (*values, total):
            assert not words & set(plain.view(np.uint64).tolist())
            assert not words & set(np.rint(plain * SCALE).astype(np.int64).view(np.uint64).tolist())


def test_sums_of_some_contributions_look_uniform_too(rings):
    members = backends(rings, 30)
    header = members[0].small_header(PLACE, length=4000)
    sealed = list(sealed_by_all(members, header, np.zeros((30, 4000))).values())
    partial = np.sum([body(data) for data in sealed[:29]], axis=0, dtype=np.uint64)
    assert p_value(with_body(sealed[0], partial)) > 1e-6


def test_steps_attempts_and_recipients_have_different_pads(rings):
    member = backends(rings, 4)[0]
    headers = [
        member.block_header(recipient, Place("krylov", step, attempt), length=8)
        for recipient in ("client-01", "client-02")
        for step in (0, 1)
        for attempt in (0, 1)
    ]
    words = np.concatenate([body(member.seal(np.zeros(8), header)) for header in headers])
    assert np.unique(words).size == words.size


def test_bytes_a_value(rings):
    member = backends(rings, 10)[0]
    data = member.seal(np.zeros(2048), member.block_header("client-04", PLACE, length=2048))
    assert len(data) <= 8.1 * 2048


class TestRefusals:
    LENGTH = 40

    @pytest.fixture(params=["small", "block"])
    def scene(self, request, rings):
        """Members, the header of a sum, its contributions and who opens it."""
        members = backends(rings, 4)
        if request.param == "small":
            header = members[0].small_header(PLACE, length=self.LENGTH, vectors=70)
        else:
            header = members[0].block_header("client-03", PLACE, length=self.LENGTH, vectors=70)
        values = np.random.default_rng(0).normal(size=(4, self.LENGTH))
        return members, header, sealed_by_all(members, header, values), members[3]

    def test_every_flipped_byte_of_a_sum(self, scene):
        _, header, sealed, opener = scene
        data = add(header, sealed)
        opener.open(data, header)
        for position in range(len(data)):
            bad = bytearray(data)
            bad[position] ^= 1 << position % 8
            with pytest.raises(ProtocolError):
                opener.open(bytes(bad), header)

    def test_every_flipped_byte_of_a_contribution(self, scene):
        _, header, sealed, opener = scene
        name, good = next(iter(sealed.items()))
        for position in range(len(good)):
            bad = bytearray(good)
            bad[position] ^= 0x80
            with pytest.raises(ProtocolError):
                opener.open(add(header, sealed | {name: bytes(bad)}), header)

    def test_a_change_of_two_to_the_63_in_value_and_check(self, scene):
        _, header, sealed, opener = scene
        data = add(header, sealed)
        words = body(data).copy()
        words[[5, -1]] += np.uint64(1 << 63)
        with pytest.raises(ProtocolError, match="altered"):
            opener.open(with_body(data, words), header)

    @pytest.mark.parametrize("sign", [1, -1])
    def test_a_dropped_or_doubled_contribution(self, scene, sign):
        _, header, sealed, opener = scene
        data = add(header, sealed)
        one = body(next(iter(sealed.values())))
        words = body(data) + one if sign > 0 else body(data) - one
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            opener.open(with_body(data, words), header)

    def test_a_contribution_that_the_server_makes_up(self, scene):
        _, header, sealed, opener = scene
        data = add(header, sealed)
        words = body(data).copy()
        words[3] += np.uint64(1 << 44)
        with pytest.raises(ProtocolError, match="altered"):
            opener.open(with_body(data, words), header)
        words[-3] += np.uint64(1)
        with pytest.raises(ProtocolError, match="too many"):
            opener.open(with_body(data, words), header)

    def test_reordered_contributions_and_values(self, scene):
        _, header, sealed, opener = scene
        names = list(sealed)
        swapped = with_body(sealed[names[0]], body(sealed[names[1]]))
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            opener.open(add(header, sealed | {names[0]: swapped}), header)
        data = add(header, sealed)
        words = body(data).copy()
        words[[0, 1]] = words[[1, 0]]
        with pytest.raises(ProtocolError, match="altered"):
            opener.open(with_body(data, words), header)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("step", 6),
            ("attempt", 1),
            ("phase", "gram"),
            ("vectors", 60),
            ("key_id", "00" * 8),
            ("members", "00" * 16),
            ("job", "00" * 16),
            ("backend", "plain"),
            ("length", 39),
            ("profile", "q36"),
            ("recipient", "client-02"),
            ("contributors", 2),
        ],
    )
    def test_a_stale_or_foreign_header(self, scene, field, value):
        _, header, sealed, opener = scene
        data = add(header, sealed)
        other = changed(header, field, value).pack() + body(data).tobytes()
        with pytest.raises(ProtocolError, match=f"says {field} ="):
            opener.open(other, header)
        accumulator = make_accumulator(header, lambda recipient: tuple(sealed))
        name, good = next(iter(sealed.items()))
        foreign = changed(header, field, value).of(name).pack() + body(good).tobytes()
        if field == "recipient":
            # It is another sum of the step, which then lacks the others.
            accumulator.add(foreign)
            assert accumulator.missing(value)
        else:
            with pytest.raises(ProtocolError, match=f"says {field} ="):
                accumulator.add(foreign)
        assert accumulator.missing(header.recipient) == tuple(sealed)

    def test_a_replayed_sum_under_a_new_header(self, scene):
        members, header, sealed, opener = scene
        data = add(header, sealed)
        later = members[0]._header(header.recipient, Place("krylov", 8), self.LENGTH, 70)
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            opener.open(later.pack() + body(data).tobytes(), later)

    def test_members_who_disagree_on_the_vectors_so_far(self, scene):
        members, header, sealed, opener = scene
        other = members[0]._header(header.recipient, PLACE, self.LENGTH, 60)
        first = make_backend("mask", members[0].keys)
        data = first.seal(np.zeros(self.LENGTH), other)
        forged = with_body(sealed["client-00"], body(data))
        with pytest.raises(ProtocolError, match="altered"):
            opener.open(add(header, sealed | {"client-00": forged}), header)

    def test_members_who_were_told_different_things(self, scene):
        members, header, sealed, opener = scene
        other = make_backend("mask", members[0].keys).seal(
            np.ones(self.LENGTH), header, context=b"another transcript"
        )
        with pytest.raises(ProtocolError, match="told different things"):
            opener.open(add(header, sealed | {"client-00": other}), header)
        assert opener.open(add(header, sealed), header)

    def test_a_sum_for_someone_else(self, scene):
        members, header, sealed, _ = scene
        if header.recipient:
            with pytest.raises(ProtocolError, match="Only 'client-03'"):
                members[1].open(add(header, sealed), header)
            with pytest.raises(ProtocolError, match="stays local"):
                members[3].seal(np.zeros(self.LENGTH), header)

    def test_a_cut_or_longer_sum(self, scene):
        _, header, sealed, opener = scene
        data = add(header, sealed)
        for bad in (data[:-8], data + bytes(8), data[:-1]):
            with pytest.raises(ProtocolError, match="cut or altered"):
                opener.open(bad, header)

    def test_a_pad_used_twice(self, scene):
        members, header, sealed, _ = scene
        values = np.random.default_rng(0).normal(size=(4, self.LENGTH))[0]
        assert members[0].seal(values, header) == sealed["client-00"]
        values[7] += 1e-12
        with pytest.raises(ProtocolError, match="used once"):
            members[0].seal(values, header)

    def test_wrong_lengths_values_and_names(self, scene):
        members, header, _, _ = scene
        fresh = make_backend("mask", members[0].keys)
        with pytest.raises(ProtocolError, match="39 values"):
            fresh.seal(np.zeros(39), header)
        with pytest.raises(ProtocolError, match="scale the values down"):
            fresh.seal(np.full(self.LENGTH, 2.0**15), header)
        with pytest.raises(ProtocolError, match="no member"):
            fresh.block_header("nobody", PLACE, length=1)


def test_memory_of_the_sum_does_not_grow_with_sealed_by_all(rings):
    member = backends(rings, 41)[0]
    size = 50_000

    def peak(count):
        senders = {"client-40": [f"client-{i:02d}" for i in range(count)]}
        header = make_backend("mask", member.keys, senders=senders).block_header(
            "client-40", PLACE, length=size
        )
        tracemalloc.start()
        accumulator = make_accumulator(header, senders.__getitem__)
        for sender in senders["client-40"]:
            accumulator.add(header.of(sender).pack() + bytes(8 * (size + 3)))
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(40) < 1.1 * peak(5)
