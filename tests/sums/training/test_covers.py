"""Training sums in ciphertexts: the same numbers as under pads alone, and what they hide."""

from itertools import combinations

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.ckks import coefficients, wire, words
from fedlap_app.sums.ckks.coefficients import Coefficients
from fedlap_app.sums.ckks.parameters import TRAINING_2048, Parameters
from fedlap_app.sums.header import Header
from fedlap_app.sums.training.agreed import LAST, WEIGHT_SUM
from fedlap_app.sums.training.covers import CKKS, COVERS, Ciphertexts, _form
from fedlap_app.sums.training.shape import SumShape, Tensor
from tests.adversary.scene import is_uniform
from tests.sums.training.federation import Federation

WIDE = SumShape((Tensor("A", (300, 20)),), 40)


@pytest.fixture
def ciphered(tmp_path):
    """Four members whose sums are ciphertexts, ready for the first round."""
    return Federation(tmp_path / CKKS, 4, shape=WIDE, backend=CKKS).begin()


def residues_of(body, form):
    """Key id, seeds and residues."""
    key, seeds, packed = form.read(np.frombuffer(body, "<u8"))
    return key, seeds, wire.unpack(packed, TRAINING_2048)


def taken_apart(data, form):
    """Header, seeds and residues of a contribution or a sum."""
    header, size = Header.unpack(data)
    return header, *residues_of(data[size:], form)


def written(header, form, key, seeds, residues):
    """The other way."""
    return header.pack() + form.write(key, seeds, wire.pack(residues, TRAINING_2048))


def test_every_member_opens_the_numbers_of_mask_bit_for_bit(tmp_path):
    found = {}
    for backend in COVERS:
        some = Federation(tmp_path / backend, 5, shape=WIDE, backend=backend).begin()
        turns = some.turn(1), some.turn(2), some.turn(some.agreed.rounds + LAST)
        found[backend] = [
            (*(mean.tobytes() for mean in each.mean.values()), each.totals.tobytes())
            for turn in turns
            for each in some.round(turn, some.draw(turn.number)).values()
        ]
    assert found["mask"] == found[CKKS]
    assert all(len(set(found[CKKS][at : at + 5])) == 1 for at in (0, 5, 10))


def test_sums_are_exact_for_as_many_contributors_as_are_said():
    held = Coefficients(TRAINING_2048)
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 1 << held.parameters.word_bits, (30, 192), dtype=np.uint64)
    total, sealed = np.zeros(192, dtype=np.uint64), []
    for number, row in enumerate(numbers):
        secret = b"key %d" % number * 8
        zeros, seeds = coefficients.zeros([secret], TRAINING_2048)
        residues = held.add(held.encode(row), zeros.reshape(-1)[:192])
        total = (total + residues) % np.uint64(TRAINING_2048.modulus)
        sealed.append((secret, seeds))
    opened = coefficients.unseal(total, sealed, TRAINING_2048)
    expected = numbers.sum(axis=0) & np.uint64((1 << held.parameters.word_bits) - 1)
    assert (held.decode(opened) == expected).all()
    exact = sum(held.encode(row).astype(object) for row in numbers)
    modulus = TRAINING_2048.modulus
    errors = (opened.astype(object) - exact + modulus // 2) % modulus - modulus // 2
    deviation = np.sqrt(30.0) * 3.2
    assert 0.8 * deviation < np.std(errors.astype(float)) < 1.2 * deviation
    assert held.most_contributors == 4096
    with pytest.raises(ProtocolError, match=r"4097 ciphertexts .* holds 4096"):
        held.require_few(4097)


@pytest.mark.parametrize("bits", [(44, 12), (54, 10), (60, 12)])
def test_any_error_below_half_a_step_is_taken_off(bits):
    chosen = Parameters("some", 4096 if bits[0] == 60 else 2048, *bits)
    held, rng = Coefficients(chosen), np.random.default_rng(1)
    words_in = rng.integers(0, 1 << held.parameters.word_bits, 5000, dtype=np.uint64)
    words_in[:2] = 0, (1 << held.parameters.word_bits) - 1
    most = int(chosen.scale / 2) - 4
    for error in (-most, 0, most):
        moved = (held.encode(words_in).astype(object) + error) % chosen.modulus
        assert (held.decode(moved.astype(np.uint64)) == words_in).all()


def test_a_member_with_the_key_of_the_group_opens_uniform_words_of_another(ciphered):
    """Whatever a server shows it: one contribution, or sums that lack two."""
    turn = ciphered.turn(1)
    nothing = {"A": np.zeros((300, 20), np.float32)}, np.zeros(40)
    sealed = ciphered.seal(turn, dict.fromkeys(ciphered.names, nothing))
    cover = Ciphertexts(ciphered.rings["client-00"])
    opened = {}
    for name, data in sealed.items():
        _, size = Header.unpack(data)
        found = cover.open(memoryview(data)[size:], WIDE, 1)
        opened[name] = found[: WIDE.narrow]
        assert is_uniform(opened[name])
    others = [opened[name] for name in ciphered.names[1:]]
    for one, other in combinations(others, 2):
        assert is_uniform(one - other)
        assert is_uniform((one.view("<u4") + other.view("<u4")).view("<u8"))
    assert not sum(each.view("<u4") for each in opened.values()).any()  # of whom all are in


def test_the_server_gets_uniform_residues_and_other_ones_each_time(ciphered):
    turn, form = ciphered.turn(1), _form(WIDE)
    drawn = ciphered.draw()
    change = ciphered.jobs["client-01"]
    sealed = bytes(change.seal(turn, *drawn["client-01"]))
    assert change.seal(turn, *drawn["client-01"]) == sealed  # stored before it leaves
    again = Ciphertexts(ciphered.rings["client-01"])
    empty = np.zeros(WIDE.narrow + WIDE.scores + 3, dtype="<u8")
    bodies = [again.seal(empty, WIDE, 4) for _ in range(2)]
    rows = [residues_of(body, form) for body in bodies]
    rows.append(taken_apart(sealed, form)[1:])
    modulus = TRAINING_2048.modulus
    for _, seeds, residues in rows:
        assert is_uniform(residues, modulus)
        assert len(set(seeds)) == len(seeds)
    assert not {*rows[0][1]} & {*rows[1][1]}
    assert is_uniform((rows[0][2] + np.uint64(modulus) - rows[1][2]) % np.uint64(modulus), modulus)


def summed(contributions, form, drawn_of):
    """A sum that a server makes of some contributions, with the seeds of others."""
    header, key, _, _ = taken_apart(contributions[0], form)
    rows = [taken_apart(data, form)[3] for data in contributions]
    total = sum(row.astype(object) for row in rows) % TRAINING_2048.modulus
    seeds = [seed for data in drawn_of for seed in taken_apart(data, form)[2]]
    return written(header.of(""), form, key, seeds, total.astype(np.uint64))


def test_dropped_doubled_altered_and_swapped_contributions_are_refused(ciphered):
    turn, form = ciphered.turn(1), _form(WIDE)
    sealed = [*ciphered.seal(turn, ciphered.draw()).values()]
    first, _, *others = sealed
    job = ciphered.jobs["client-00"]
    twice = [first, first, *others]
    forged = [
        summed([first, *others], form, sealed),
        summed(twice, form, twice),
        summed([*sealed, first], form, sealed),
        summed(sealed, form, [first, first, *others]),
    ]
    four = form._replace(contributors=4)
    header, key, seeds, total = taken_apart(summed(sealed, form, sealed), four)
    for at, error in ((0, 1 << 12), (WIDE.narrow, 1 << 43), (form.words - 1, 1 << 13)):
        moved = total.copy()
        moved[at] = (int(moved[at]) + error) % TRAINING_2048.modulus
        forged.append(written(header, form, key, seeds, moved))
    kinds = [bytes([9]) + seeds[0][1:], *seeds[1:]]  # a generator that SEAL does not have
    forged.append(written(header, form, key, kinds, total))
    for data in forged:
        with pytest.raises(ProtocolError, match=r"pads|altered|too many|too few"):
            job.open(turn, data)
    moved = (total + np.uint64(1000)) % np.uint64(TRAINING_2048.modulus)  # below half a step
    same = [job.open(turn, written(header, form, key, seeds, row)) for row in (total, moved)]
    assert (same[0].mean["A"] == same[1].mean["A"]).all()


def test_sums_under_other_keys_and_of_other_forms_are_refused(ciphered, tmp_path):
    turn, form = ciphered.turn(1), _form(WIDE)
    sealed = [*ciphered.seal(turn, ciphered.draw()).values()]
    header, key, seeds, residues = taken_apart(sealed[0], form)
    strange = written(header, form, b"x" * 8, seeds, residues)
    adder = ciphered.adder(turn.place, turn.members, WIDE)
    adder.add("client-01", sealed[1])
    with pytest.raises(ProtocolError, match="different keys are never added"):
        adder.add("client-00", strange)
    beyond = written(header, form, key, seeds, residues | np.uint64((1 << 44) - 1))
    with pytest.raises(ProtocolError, match="no residue of the agreed prime"):
        adder.add("client-00", beyond)
    masked = Federation(tmp_path / "mask", 4, shape=WIDE).begin()
    with pytest.raises(ProtocolError, match="backend = 'mask'"):
        adder.add("client-00", masked.seal(turn, masked.draw())["client-00"])
    for data in sealed[:1] + sealed[2:]:
        adder.add(Header.unpack(data)[0].sender, data)
    ciphered.jobs["client-00"].open(turn, adder.result())
    with pytest.raises(ProtocolError, match="other keys than those of the job"):
        words.require_key(b"x" * 8, key, "a round")


def test_a_restart_between_any_two_acts_changes_no_number(tmp_path):
    """Ciphertexts of what was not stored are drawn anew; what they hold is the same."""
    states = []
    for restarts in (False, True):
        some = Federation(tmp_path / str(restarts), 3, backend=CKKS).begin()
        for number in (1, 2):
            turn = some.turn(number)
            data = some.add(turn, some.seal(turn, some.draw(number)))
            for name in some.names:
                if restarts:
                    some.jobs[name] = some.job(name)
                    assert some.jobs[name].seal(turn, *some.draw(9)[name])
                mean = some.jobs[name].open(turn, data).mean
                some.jobs[name].settle(b"".join(part.tobytes() for part in mean.values()))
        states += [bytes(job.state) for job in some.jobs.values()]
    assert len(set(states)) == 1


def test_a_sum_of_weights_takes_a_few_hundred_bytes():
    assert COVERS[CKKS].body_bytes(WEIGHT_SUM, 1) < 500
    parameters = sum(tensor.size for tensor in WIDE.tensors)
    assert COVERS[CKKS].body_bytes(WIDE, 1) < 6.0 * parameters + 1000
