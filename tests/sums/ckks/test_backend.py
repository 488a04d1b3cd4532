from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kstest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.ckks import ciphertexts, keys
from fedlap_app.sums.ckks.parameters import PARAMETERS
from fedlap_app.sums.ckks.profiles import without_pads
from fedlap_app.sums.header import Header, Place
from tests.sums.sums import add, peak_memory, sealed_by_all

PLACE = Place("krylov", 7)
CHOSEN = PARAMETERS["ckks-2048"]

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")


def backends(rings, count, **options):
    return [make_backend("ckks", ring, **options) for ring in rings(count)]


@pytest.mark.parametrize("profile", PARAMETERS)
@pytest.mark.parametrize("count", [2, 3, 10, 22])
def test_sums_are_right_up_to_the_noise(rings, count, profile):
    members = [
        make_backend("ckks", with_keys(ring, PARAMETERS[profile]), profile=profile)
        for ring in rings(count)
    ]
    values = np.random.default_rng(count).normal(size=(count, 2100))
    block = members[0].block_header(members[-1].keys.me, PLACE, length=2100)
    small = members[0].small_header(PLACE, length=2100)
    for header, terms in ((block, values[:-1]), (small, values)):
        data = add(header, sealed_by_all(members, header, values))
        opened = members[-1].open(data, header).numbers
        noise = PARAMETERS[profile].noise(len(terms), symmetric=not header.recipient)
        assert np.abs(opened - terms.sum(axis=0)).max() < 16 * noise


def with_keys(ring, parameters, cache={}):  # noqa: B006
    """The ring with public keys of other parameters."""
    for name in ring.members:
        if (name, parameters) not in cache:
            cache[name, parameters] = keys.new_public_key(name.encode(), parameters)
    public = {name: cache[name, parameters] for name in ring.members}
    return replace(ring, sum_seed=ring.me.encode(), public_keys=public)


def test_bytes_a_slot(rings):
    """Two numbers of 54 bits a slot, or one where the other comes from a seed."""
    member = backends(rings, 3)[0]
    slots = 4 * CHOSEN.degree
    block = member.seal(
        np.zeros(slots - 5), member.block_header("client-01", PLACE, length=slots - 5)
    )
    small = member.seal(np.zeros(slots - 5), member.small_header(PLACE, length=slots - 5))
    assert len(block) / slots < 13.6
    assert len(small) / slots < 6.9


def test_the_recipient_cannot_open_a_part_of_a_sum(rings):
    """All but one ciphertext, decrypted with the right key: noise that knows nothing of them."""
    members = backends(rings, 6)
    recipient = members[-1]
    header = recipient.block_header(recipient.keys.me, PLACE, length=2000)
    values = np.random.default_rng(0).normal(size=(6, 2000)) * 10
    sealed = sealed_by_all(members, header, values)
    decryptor = keys.decryptor(recipient.keys.sum_seed, CHOSEN)
    # Uniform residues decode to values of this deviation.
    sigma = CHOSEN.modulus / np.sqrt(12) * np.sqrt(CHOSEN.degree / 2) / CHOSEN.scale
    for left_out in (0, 4):
        names = [name for i, name in enumerate(sealed) if i != left_out]
        lines = make_accumulator(header, lambda recipient: tuple(sealed))
        for name in names:
            lines.add(sealed[name])
        total = lines._lines[recipient.keys.me].total % np.uint64(CHOSEN.modulus)
        opened = ciphertexts.decrypt(total, decryptor, CHOSEN)[0]
        assert kstest(opened / sigma, "norm").pvalue > 1e-4
        part = np.delete(values[:5], left_out, axis=0).sum(axis=0)
        assert abs(np.corrcoef(opened[:2000], part)[0, 1]) < 0.1


def test_without_pads_single_contributions_can_be_read(rings):
    """What the pads are for, and why the setting has its name."""
    with pytest.warns(InsecureWarning, match="insecure-no-pads"):
        members = backends(rings, 3, profile=without_pads("ckks-2048"))
    header = members[0].block_header("client-02", PLACE, length=100)
    values = np.random.default_rng(0).normal(size=100)
    lines = make_accumulator(header, members[0].senders)
    lines.add(members[0].seal(values, header))
    opened = ciphertexts.decrypt(
        lines._lines["client-02"].total, keys.decryptor(members[2].keys.sum_seed, CHOSEN), CHOSEN
    )[0]
    np.testing.assert_allclose(opened[:100], values, rtol=0, atol=1e-8)


@pytest.mark.parametrize("value", [np.nan, np.inf, 398.2 / 3, -1e9])
def test_what_could_wrap_is_refused_without_the_value(rings, value):
    member = backends(rings, 3)[0]
    header = member.small_header(PLACE, length=3)
    with pytest.raises(ProtocolError, match=r"not below 132\.7") as error:
        member.seal([0.0, value, 0.0], header)
    assert str(value) not in str(error.value)


def test_the_largest_sum_does_not_wrap(rings):
    members = backends(rings, 3)
    header = members[0].small_header(PLACE, length=2000)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=2000) * 132.7
    opened = members[0].open(add(header, sealed_by_all(members, header, [signs] * 3)), header)
    np.testing.assert_allclose(opened.numbers, 3 * signs, rtol=0, atol=1e-9)


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
        change(accumulator._lines["client-03"].total)
        return members[3].open(accumulator.result("client-03"), header)

    def test_an_honest_sum_passes(self, scene):
        assert self.opened(scene, lambda total: None) is not None

    @pytest.mark.parametrize("share", [1e-4, 1e-2, 1.0])
    def test_a_known_change_of_the_plaintext(self, scene, share):
        """Whoever adds to the first polynomial changes the plaintext without a key."""

        def change(total):
            total[0, 0, 0] += np.uint64(int(share * CHOSEN.scale))

        with pytest.raises(ProtocolError, match=r"altered|refused"):
            self.opened(scene, change)

    @pytest.mark.parametrize(
        "change",
        [
            lambda total: total.__setitem__((0, 1, 5), 7),
            lambda total: total.__imul__(np.uint64(2)),
            lambda total: total.__setitem__(slice(None), 1),
            lambda total: total.__setitem__((1, 1), 0),
        ],
        ids=["second polynomial", "doubled", "replaced", "no second polynomial"],
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
        with pytest.raises(ProtocolError, match="under another key"):
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
    for name in ("secret_key", "public_encryptor", "symmetric_encryptor", "decryptor"):
        monkeypatch.delattr(keys, name)
    assert len(add(header, sealed)) > 0
