from dataclasses import replace

import numpy as np
import pytest
import tenseal as ts

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.choice import make_accumulator, make_backend
from fedlap_app.sums.ckks import keys
from fedlap_app.sums.ckks.parameters import PARAMETERS, load_seal
from fedlap_app.sums.header import Header, Place

CHOSEN = PARAMETERS["ckks-2048"]
PLACE = Place("krylov", 2)


def saved(thing, tmp_path):
    thing.save(str(tmp_path / "thing"))
    return (tmp_path / "thing").read_bytes()


def secret_key(tmp_path):
    return saved(keys.secret_key(b"s" * 32, CHOSEN), tmp_path)


def plaintext(tmp_path):
    seal = load_seal()
    plain = seal.Plaintext()
    seal.CKKSEncoder(CHOSEN.context).encode([1.0, 2.0], CHOSEN.scale, plain)
    return saved(plain, tmp_path)


def ciphertext(tmp_path):
    seal = load_seal()
    found = seal.Ciphertext()
    keys.symmetric_encryptor(b"s" * 32, CHOSEN).encrypt_zero_symmetric(found)
    return saved(found, tmp_path)


def context(tmp_path):
    made = ts.context(ts.SCHEME_TYPE.CKKS, 8192, -1, [60, 40, 40, 60])
    return made.serialize(save_secret_key=True)


def junk(tmp_path):
    return np.random.default_rng(0).bytes(40_000)


@pytest.fixture
def scene(rings):
    member = make_backend("ckks", rings(3)[0])
    header = member.block_header("client-02", PLACE, length=100)
    return member, header, member.seal(np.ones(100), header)


def assert_refused(scene, data, match):
    member, header, sealed = scene
    accumulator = make_accumulator(header, member.senders)
    with pytest.raises(ProtocolError, match=match):
        accumulator.add(data)
    assert not accumulator._lines["client-02"].total.any()
    accumulator.add(sealed)
    assert accumulator.missing("client-02") == ("client-01",)


@pytest.mark.parametrize("thing", [secret_key, plaintext, ciphertext, context, junk])
@pytest.mark.parametrize("form", ["bare", "behind a header", "of the right length"])
def test_only_ciphertexts_are_added(scene, tmp_path, thing, form):
    _, _, sealed = scene
    data, size = thing(tmp_path), Header.unpack(sealed)[1]
    if form == "bare":
        return assert_refused(scene, data, "does not begin with a header")
    if form == "behind a header":
        return assert_refused(
            scene, sealed[:size] + data, "were expected; they were cut or altered"
        )
    length = len(sealed) - size
    right = (data * (1 + length // len(data)))[:length]
    match = "An object of SEAL" if right[:2] == b"\x5e\xa1" else "no ciphertext of this protocol"
    return assert_refused(scene, sealed[:size] + right, match)


@pytest.mark.parametrize(
    ("at", "value", "match"),
    [
        (2, 2, "form 2 where 4"),
        (3, 3, "size 3 where 2"),
        (3, 1, "size 1 where 2"),
        (5, 16, "degree 4096 where 2048"),
        (6, 60, "bits of the prime 60 where 54"),
    ],
)
def test_other_parameters_are_refused(scene, at, value, match):
    _, _, sealed = scene
    changed = bytearray(sealed)
    changed[Header.unpack(sealed)[1] + at] = value
    assert_refused(scene, bytes(changed), match)


def test_a_coefficient_above_the_prime_is_refused(scene):
    _, _, sealed = scene
    changed = bytearray(sealed)
    changed[-600:] = b"\xff" * 600
    assert_refused(scene, bytes(changed), "no residue of the agreed prime")


def test_a_ciphertext_of_three_polynomials_does_not_fit(scene):
    _, _, sealed = scene
    assert_refused(scene, sealed + bytes(CHOSEN.degree * CHOSEN.bits // 8), "cut or altered")


def test_ciphertexts_under_different_keys_are_not_added(scene, rings):
    member, header, sealed = scene
    accumulator = make_accumulator(header, member.senders)
    accumulator.add(sealed)
    foreign = make_backend("ckks", replace(rings(3)[1], group_key=b"x" * 32))
    data = foreign.seal(np.ones(100), header._replace(key_id=foreign.keys.key_id))
    size = Header.unpack(data)[1]
    with pytest.raises(ProtocolError, match="under different keys are never added"):
        accumulator.add(header.of("client-01").pack() + data[size:])
