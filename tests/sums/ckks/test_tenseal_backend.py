"""The profile `tenseal-default`: real `ckks_vector` objects with pads inside."""

import struct
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import tenseal as ts
from scipy.stats import kstest

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.sums.backend import InsecureWarning
from fedlap_app.sums.choice import backend_class, make_accumulator, make_backend
from fedlap_app.sums.ckks import tenseal_contexts, tenseal_vectors, wire
from fedlap_app.sums.ckks.parameters import load_seal
from fedlap_app.sums.ckks.profiles import without_pads
from fedlap_app.sums.ckks.seal_files import saved_bytes
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT, TensealParameters
from fedlap_app.sums.header import Header, Place
from tests.sums.sums import peak_memory

PLACE = Place("krylov", 3)
PROFILE = TENSEAL_DEFAULT.name

pytestmark = pytest.mark.filterwarnings("ignore::fedlap_app.sums.backend.InsecureWarning")


@cache
def public_key(name):
    return backend_class("ckks", PROFILE).new_public_key(PROFILE, name.encode())


def backends(rings, count, profile=PROFILE):
    found = []
    for ring in rings(count):
        public = {name: public_key(name) for name in ring.members}
        ring = replace(ring, sum_seed=ring.me.encode(), public_keys=public)
        found.append(make_backend("ckks", ring, profile=profile))
    return found


def added(header, members, sealed):
    accumulator = make_accumulator(header, members[0].senders)
    for each in sealed:
        accumulator.add(each)
    return accumulator


def sealed_by_all(members, header, values):
    senders = members[0].senders(header.recipient)
    pairs = zip(members, values, strict=True)
    return [m.seal(v, header) for m, v in pairs if m.keys.me in senders]


def test_128_bits_of_security_are_enforced():
    seal = load_seal()
    most = seal.CoeffModulus.MaxBitCount(TENSEAL_DEFAULT.degree, seal.SEC_LEVEL_TYPE.TC128)
    assert sum(TENSEAL_DEFAULT.primes) == 200 <= most == 218
    assert [prime.bit_length() for prime in TENSEAL_DEFAULT.moduli] == [60, 40, 40]
    with pytest.raises(ConfigError, match="128 bits of security"):
        _ = TensealParameters("weak", 8192, (60, 50, 50, 60), 40).context


@pytest.mark.parametrize("count", [2, 3, 22])
def test_sums_are_right_up_to_the_noise(rings, count):
    members = backends(rings, count)
    values = np.random.default_rng(count).normal(size=(count, 4500))
    block = members[0].block_header(members[-1].keys.me, PLACE, length=4500)
    small = members[0].small_header(PLACE, length=4500)
    for header, terms in ((block, values[:-1]), (small, values)):
        total = added(header, members, sealed_by_all(members, header, values))
        opened = members[-1].open(total.result(header.recipient), header).numbers
        error = opened - terms.sum(axis=0)
        noise = TENSEAL_DEFAULT.noise(len(terms), symmetric=not header.recipient)
        assert 0.8 * noise < error.std() < 1.2 * noise


def test_lengths_tell_nothing(rings):
    member = backends(rings, 3)[0]
    header = member.block_header("client-01", PLACE, length=4091)
    other = member.block_header("client-01", Place("krylov", 4), length=4091)
    sizes = {len(member.seal(np.zeros(4091), header)), len(member.seal(np.ones(4091), other))}
    assert sizes == {len(header.of("client-00").pack()) + 16 + tenseal_vectors.VECTOR_BYTES}


def test_the_recipient_cannot_open_a_part_of_a_sum(rings):
    members = backends(rings, 5)
    header = members[0].block_header("client-04", PLACE, length=4000)
    values = np.random.default_rng(0).normal(size=(5, 4000)) * 10
    sealed = sealed_by_all(members, header, values)
    secret = tenseal_contexts.decrypting(members[4].keys.sum_seed)
    vector = added(header, members, sealed[:3])._lines["client-04"].total[0]
    opened = tenseal_vectors.decrypt([tenseal_vectors.write(vector)], secret)
    # Uniform residues of 140 bits decode to values of this deviation.
    modulus = float(np.prod([float(prime) for prime in TENSEAL_DEFAULT.moduli]))
    sigma = modulus / np.sqrt(12) * np.sqrt(TENSEAL_DEFAULT.degree / 2) / TENSEAL_DEFAULT.scale
    assert kstest(opened / sigma, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(opened[:4000], values[:3].sum(axis=0))[0, 1]) < 0.1


def test_without_pads_single_contributions_can_be_read(rings):
    with pytest.warns(InsecureWarning, match="insecure-no-pads"):
        members = backends(rings, 3, without_pads(PROFILE))
    header = members[0].block_header("client-02", PLACE, length=50)
    values = np.random.default_rng(0).normal(size=50)
    lines = added(header, members, [members[0].seal(values, header)])
    room = tenseal_vectors.write(lines._lines["client-02"].total[0])
    opened = tenseal_vectors.decrypt([room], tenseal_contexts.decrypting(b"client-02"))
    np.testing.assert_allclose(opened[:50], values, rtol=0, atol=1e-6)


def test_the_run_warns_of_everything_that_is_weaker(rings):
    with pytest.warns(InsecureWarning) as caught:
        backends(rings, 2, without_pads(PROFILE))
    for words in ("for comparison only", "insecure-no-pads leaves out", "With two members"):
        assert words in str(caught[0].message)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e40])
def test_what_could_wrap_is_refused(rings, value):
    member = backends(rings, 3)[0]
    with pytest.raises(ProtocolError, match="not finite or not below"):
        member.seal([0.0, value], member.small_header(PLACE, length=2))


class TestForgedSums:
    @pytest.fixture
    def scene(self, rings):
        members = backends(rings, 4)
        header = members[0].block_header("client-03", PLACE, length=300)
        values = np.random.default_rng(1).normal(size=(4, 300)) / 50
        return members, header, sealed_by_all(members, header, values)

    def test_a_change_of_the_plaintext(self, scene):
        members, header, sealed = scene
        accumulator = added(header, members, sealed)
        accumulator._lines["client-03"].total[0] += [1e-2] + [0.0] * 4095
        with pytest.raises(ProtocolError, match="altered"):
            members[3].open(accumulator.result("client-03"), header)

    def test_a_doubled_contribution(self, scene):
        members, header, sealed = scene
        body = sealed[0][Header.unpack(sealed[0])[1] :]
        twice = [sealed[0], sealed[1], header.of("client-02").pack() + body]
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            members[3].open(added(header, members, twice).result("client-03"), header)

    def test_a_sum_of_another_key(self, scene):
        members, header, sealed = scene
        data = bytearray(added(header, members, sealed).result("client-03"))
        data[Header.unpack(bytes(data))[1] + 8] ^= 1
        with pytest.raises(ProtocolError, match="under another key"):
            members[3].open(bytes(data), header)


def full_context():
    made = ts.context(ts.SCHEME_TYPE.CKKS, 8192, -1, [60, 40, 40, 60])
    made.global_scale = 2.0**40
    return made


def other_vectors():
    """What a client might send in place of a vector of the agreed form."""
    context = full_context()
    vector = ts.ckks_vector(context, [0.5] * 4096)
    product = ts.ckks_vector(context, [0.5] * 4096)
    context.auto_relin = False
    context.auto_rescale = False
    product *= vector
    small = ts.context(ts.SCHEME_TYPE.CKKS, 8192, -1, [50, 40, 50])
    small.global_scale = 2.0**40
    encoder, plain = load_seal().CKKSEncoder(TENSEAL_DEFAULT.context), load_seal().Plaintext()
    encoder.encode([1.0], TENSEAL_DEFAULT.scale, plain)
    key = tenseal_contexts._secret_key(b"s")
    return {
        "secret key": saved_bytes(key),
        "plaintext": saved_bytes(plain),
        "context": context.serialize(save_secret_key=False, save_galois_keys=False)[:330_000],
        "secret key in a vector": tenseal_vectors._vector(saved_bytes(key)),
        "plaintext in a vector": tenseal_vectors._vector(saved_bytes(plain)),
        "junk in a vector": tenseal_vectors._vector(np.random.default_rng(0).bytes(300_000)),
        "junk": np.random.default_rng(0).bytes(300_000),
        "shorter": ts.ckks_vector(context, [0.5] * 4000).serialize(),
        "other scale": ts.ckks_vector(context, [0.5] * 4096, 2.0**30).serialize(),
        "three polynomials": product.serialize(),
        "other primes": ts.ckks_vector(small, [0.5] * 4096).serialize(),
        "nothing": b"",
    }


def test_the_server_adds_ciphertexts_of_the_agreed_form_only(rings):
    members = backends(rings, 3)
    header = members[0].block_header("client-02", PLACE, length=100)
    sealed = members[0].seal(np.ones(100), header)
    at = Header.unpack(sealed)[1] + wire.TAG_BYTES
    accumulator = make_accumulator(header, members[0].senders)
    room = tenseal_vectors.VECTOR_BYTES
    for name, thing in other_vectors().items():
        filled = (struct.pack("<Q", len(thing)) + thing)[:room].ljust(room, b"\0")
        with pytest.raises(ProtocolError):
            accumulator.add(sealed[:at] + filled)
        assert accumulator.missing("client-02") == ("client-00", "client-01"), name
        with pytest.raises(ProtocolError):
            accumulator.add(thing)
    with pytest.raises(ProtocolError, match="filled up with zeros"):
        accumulator.add(sealed[:-1] + b"x")
    accumulator.add(sealed)
    assert accumulator.missing("client-02") == ("client-01",)


def test_a_ciphertext_of_another_profile_is_refused(rings):
    members = backends(rings, 3)
    header = members[0].block_header("client-02", PLACE, length=100)
    sealed = bytearray(members[0].seal(np.ones(100), header))
    sealed[Header.unpack(bytes(sealed))[1] + 5] = 8
    with pytest.raises(ProtocolError, match="degree 2048 where 8192 was agreed"):
        make_accumulator(header, members[0].senders).add(bytes(sealed))


def test_ciphertexts_under_different_keys_are_not_added(rings):
    members = backends(rings, 3)
    header = members[0].block_header("client-02", PLACE, length=100)
    accumulator = added(header, members, [members[0].seal(np.ones(100), header)])
    other = members[1].keys
    public = {
        **other.public_keys,
        "client-02": backend_class("ckks", PROFILE).new_public_key(PROFILE, b"x"),
    }
    foreign = make_backend("ckks", replace(other, public_keys=public), profile=PROFILE)
    with pytest.raises(ProtocolError, match="under different keys are never added"):
        accumulator.add(foreign.seal(np.ones(100), header))


def test_the_server_holds_no_key_and_running_sums_only(rings):
    context = tenseal_contexts.keyless()
    assert not context.has_secret_key()
    assert not context.has_public_key()
    assert not context.has_relin_keys()

    def peak(count):
        return peak_memory(backends(rings, count), PLACE, length=9000)

    peak(2)
    assert peak(40) < 1.2 * peak(5)


def test_a_secret_key_follows_from_its_seed_and_encryption_from_none():
    one, again, other = (saved_bytes(tenseal_contexts._secret_key(s)) for s in (b"a", b"a", b"b"))
    assert one == again != other
    assert backend_class("ckks", PROFILE).new_public_key(PROFILE, b"a") != backend_class(
        "ckks", PROFILE
    ).new_public_key(PROFILE, b"a")
    context = tenseal_contexts.encrypting_for_all(b"a")
    rooms = [tenseal_vectors.encrypt(np.zeros(4096), context, None) for _ in range(2)]
    assert rooms[0] != rooms[1]
    opened = tenseal_vectors.decrypt(rooms, tenseal_contexts.decrypting(b"b"))
    assert np.abs(opened).mean() > 1e6
