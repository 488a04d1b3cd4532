import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.backend import InsecureWarning, Sheet
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.ckks import keys, words
from fedlap_app.sums.ckks.backend import CkksBackend
from fedlap_app.sums.ckks.parameters import PARAMETERS
from fedlap_app.sums.ckks.profiles import without_pads
from fedlap_app.sums.header import Header, Place
from tests.adversary.scene import is_uniform
from tests.sums.sums import add, peak_memory, sealed_by_all

PLACE = Place("krylov", 7)
CHOSEN = PARAMETERS["ckks-2048"]

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")


def backends(rings, count, **options):
    return [make_backend("ckks", ring, **options) for ring in rings(count)]


@pytest.mark.parametrize("profile", PARAMETERS)
@pytest.mark.parametrize("count", [2, 3, 10, 22])
def test_sums_are_those_of_the_rounded_numbers(rings, count, profile):
    members = backends(rings, count, profile=profile)
    values = np.random.default_rng(count).normal(size=(count, 2100))
    block = members[0].block_header(members[-1].keys.me, PLACE, length=2100)
    small = members[0].small_header(PLACE, length=2100)
    for header, terms in ((block, values[:-1]), (small, values)):
        data = add(header, sealed_by_all(members, header, values))
        opened = members[-1].open(data, header).numbers
        assert (opened == np.rint(terms * 2.0**34).sum(axis=0) * 2.0**-34).all()


def test_bytes_a_number(rings):
    """One residue of 54 bits; of the last ciphertext only what holds a number is sent."""
    member = backends(rings, 3)[0]
    for length in (100, CHOSEN.degree - 3, CHOSEN.degree + 100, 4 * CHOSEN.degree - 3):
        header = member.block_header("client-01", PLACE, length=length)
        sealed = member.seal(np.zeros(length), header)
        body_bytes = len(sealed) - Header.unpack(sealed)[1]
        assert body_bytes < 6.75 * (length + 67) + 72 * (length // 2048 + 1) + 17
        assert body_bytes == CkksBackend.body_bytes("", header.sums[0], summed=False)


def single(member, header, sealed, secret):
    """What one contribution holds for who has its key."""
    this = header.sums[0]
    form = words.WordForm(CHOSEN, this.length + SLOTS)
    return words.unseal(memoryview(body(sealed)), form, [secret], lambda key: None)


def test_neither_the_recipient_nor_a_member_opens_a_part_of_a_sum(rings):
    """Single contributions, and sums of all but one: uniform words that know nothing of them."""
    members = backends(rings, 6)
    recipient = members[-1]
    values = np.random.default_rng(0).normal(size=(6, 2000)) * 10
    block = recipient.block_header(recipient.keys.me, PLACE, length=2000)
    small = recipient.small_header(Place("krylov", 8), length=2000)
    modulus = 1 << CHOSEN.word_bits
    for header in (block, small):
        opened = [
            single(recipient, header, data, recipient._secret(name, header.recipient))
            for name, data in sealed_by_all(members, header, values).items()
        ]
        for left_out in range(len(opened)):
            rest = [each for at, each in enumerate(opened) if at != left_out]
            assert is_uniform(opened[left_out], modulus)
            assert is_uniform(sum(rest) % np.uint64(modulus), modulus)


def test_only_the_two_of_a_pair_have_the_key_of_a_block(rings):
    members = backends(rings, 4)
    sender, recipient = members[0], members[3]
    secret = sender._secret(sender.keys.me, recipient.keys.me)
    assert secret == recipient._secret(sender.keys.me, recipient.keys.me)
    known = {
        each._secret(other, each.keys.me) for each in members[1:3] for other in each.keys.roots
    }
    known |= {each._secret(each.keys.me, "client-03") for each in members[1:3]}
    assert secret not in known
    assert secret != sender._secret(recipient.keys.me, sender.keys.me)  # the way back


def test_without_pads_single_contributions_can_be_read(rings):
    """What the pads are for, and why the setting has its name."""
    with pytest.warns(InsecureWarning, match="insecure-no-pads"):
        members = backends(rings, 3, profile=without_pads("ckks-2048"))
    header = members[0].block_header("client-02", PLACE, length=100)
    values = np.abs(np.random.default_rng(0).normal(size=100))
    sealed = members[0].seal(values, header)
    opened = single(members[2], header, sealed, members[2]._secret("client-00", "client-02"))
    np.testing.assert_allclose(opened[:100] * 2.0**-34, values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("value", [np.nan, np.inf, 512.2 / 3, -1e9])
def test_what_could_wrap_is_refused_without_the_value(rings, value):
    member = backends(rings, 3)[0]
    header = member.small_header(PLACE, length=3)
    with pytest.raises(ProtocolError, match=r"not below 170\.6") as error:
        member.seal([0.0, value, 0.0], header)
    assert str(value) not in str(error.value)


def test_the_largest_sum_does_not_wrap(rings):
    members = backends(rings, 3)
    header = members[0].small_header(PLACE, length=2000)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=2000) * 170.66
    opened = members[0].open(add(header, sealed_by_all(members, header, [signs] * 3)), header)
    np.testing.assert_allclose(opened.numbers, 3 * signs, rtol=0, atol=1e-9)


def test_more_contributions_than_errors_leave_room_for_are_refused(rings):
    member = backends(rings, 3)[0]
    header = member.small_header(PLACE, length=3)
    many = header._replace(sums=(header.sums[0]._replace(contributors=257),))
    sheet = Sheet(many)
    with pytest.raises(ProtocolError, match=r"257 ciphertexts .* holds 256.*'mask'"):
        member.seal_sheet(sheet)


class TestForgedSums:
    """What a dishonest server does to a sum is found out by whoever opens it."""

    @pytest.fixture
    def scene(self, rings):
        members = backends(rings, 4)
        header = members[0].block_header("client-03", PLACE, length=3000)
        values = np.random.default_rng(1).normal(size=(4, 3000)) / 50
        return members, header, sealed_by_all(members, header, values)

    def opened(self, scene, change):
        members, header, sealed = scene
        accumulator = make_accumulator(header, members[0].senders)
        for each in sealed.values():
            accumulator.add(each)
        change(accumulator._lines["client-03"].total, accumulator._seeds["client-03"])
        return members[3].open(accumulator.result("client-03"), header)

    def test_an_honest_sum_passes(self, scene):
        assert self.opened(scene, lambda total, seeds: None) is not None

    def test_a_change_below_an_error_changes_no_number(self, scene):
        plain = self.opened(scene, lambda total, seeds: None).numbers

        def nudge(total, seeds):
            total += np.uint64(100)

        assert (self.opened(scene, nudge).numbers == plain).all()

    @pytest.mark.parametrize("at", [0, 2999, 3000, 3002])
    @pytest.mark.parametrize("steps", [1, 2**20, 2**43])
    def test_a_known_change_of_the_words(self, scene, at, steps):
        """Whoever adds to a coefficient changes its word without a key."""

        def change(total, seeds):
            total[at] += np.uint64(int(steps * CHOSEN.scale))

        with pytest.raises(ProtocolError, match=r"altered|refused"):
            self.opened(scene, change)

    @pytest.mark.parametrize(
        "change",
        [
            lambda total, seeds: total.__imul__(np.uint64(2)),
            lambda total, seeds: total.__setitem__(slice(None), 1),
            lambda total, seeds: seeds["client-00"].reverse(),
            lambda total, seeds: seeds.__setitem__("client-00", seeds["client-01"]),
            lambda total, seeds: seeds["client-00"].__setitem__(0, bytes([9]) + bytes(64)),
        ],
        ids=["doubled", "replaced", "swapped", "seeds of another", "an unknown generator"],
    )
    def test_any_other_change(self, scene, change):
        with pytest.raises(ProtocolError, match=r"altered|refused|decrypted"):
            self.opened(scene, change)

    def test_a_missing_or_doubled_contribution(self, scene):
        members, header, sealed = scene
        names = list(sealed)
        for chosen in (names[:-1] + names[:1], [names[0]] * 3):
            bodies = {
                name: header.of(name).pack() + body(sealed[source])
                for name, source in zip(names, chosen, strict=True)
            }
            with pytest.raises(ProtocolError, match="pads do not cancel"):
                members[3].open(add(header, bodies), header)

    def test_another_context(self, scene):
        members, header, sealed = scene
        with pytest.raises(ProtocolError, match="told different things"):
            members[3].open(add(header, sealed), header, context=b"other")

    def test_a_sum_of_another_key(self, scene):
        members, header, sealed = scene
        data = bytearray(add(header, sealed))
        data[Header.unpack(bytes(data))[1] + 8] ^= 1
        with pytest.raises(ProtocolError, match="other keys than those of the job"):
            members[3].open(bytes(data), header)


def body(data):
    return data[Header.unpack(data)[1] :]


def test_pads_are_used_once(rings):
    member = backends(rings, 3)[0]
    header = member.small_header(PLACE, length=3)
    one, again = member.seal([1.0, 2.0, 3.0], header), member.seal([1.0, 2.0, 3.0], header)
    assert one != again
    with pytest.raises(ProtocolError, match="used for other content"):
        member.seal([1.0, 2.0, 4.0], header)


def test_the_server_keeps_running_sums_only(rings):
    """Memory over 40 contributions is that over 5."""

    def peak(count):
        return peak_memory(backends(rings, count), PLACE, length=16_000)

    peak(2)
    assert peak(40) < 1.2 * peak(5)


def test_the_server_needs_no_key(rings, monkeypatch):
    members = backends(rings, 3)
    header = members[0].small_header(PLACE, length=10)
    sealed = sealed_by_all(members, header, np.ones((3, 10)))
    for name in ("secret_key", "symmetric_encryptor", "decryptor"):
        monkeypatch.delattr(keys, name)
    assert len(add(header, sealed)) > 0
