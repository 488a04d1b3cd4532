from dataclasses import fields, replace
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chisquare

from fedlap_app.errors import ProtocolError
from fedlap_app.sums.header import Header
from fedlap_app.sums.lanes import WIDTHS, Lanes
from fedlap_app.sums.training.kept_keys import FORMAT
from fedlap_app.sums.training.records import Listed, Settled
from fedlap_app.sums.training.shape import SumShape, Tensor
from tests.sums.training.federation import SHAPE, STATE, Federation

LARGE = SumShape((Tensor("A", (200, 100)),), 40)


def body(data):
    """Words behind the header."""
    return np.frombuffer(data, "<u8", offset=Header.unpack(data)[1])


def look_uniform(*many):
    """Whether the bytes of some words look drawn at random."""
    counts = [np.bincount(words.view("u1"), minlength=256) for words in many]
    return min(chisquare(each).pvalue for each in counts) > 1e-6


def test_contributions_and_all_their_differences_are_uniform(tmp_path):
    found = []
    zero = np.zeros((200, 100), np.float32)
    for number, seed in enumerate((b"one run of sixteen", b"another of sixteen")):
        some = Federation(tmp_path / str(number), 4, shape=LARGE, seed=seed, rounds=2).begin()
        drawn = dict.fromkeys(some.names, ({"A": zero}, np.zeros(40)))
        for stage in range(2):
            if stage:
                some.begin(1)
            found += map(body, some.seal(some.turn(1, stage=stage), drawn).values())
            some.round(some.turn(1, stage=stage), drawn)
        left = some.names[:3]
        found += map(body, some.seal(some.turn(2, stage=1), drawn).values())
        some.weigh(1, left)
        turn = some.turn(2, stage=1, attempt=1, members=left)
        found += map(body, some.seal(turn, drawn).values())
    assert len(found) == 30
    assert look_uniform(*found)
    assert look_uniform(*(one - other for one, other in combinations(found, 2)))
    pairs = [words[:10_000].view("<u4") for words in found]
    assert look_uniform(*(one - other for one, other in combinations(pairs, 2)))


def test_whoever_changes_pads_sums_or_records_counts_the_format_on(tmp_path):
    """Else a training that an older release began would go on to a sum that does not open."""
    some = Federation(tmp_path, 3, shape=LARGE).begin()
    drawn = dict.fromkeys(some.names, ({"A": np.zeros((200, 100), np.float32)}, np.zeros(40)))
    sealed = some.seal(some.turn(1), drawn).values()
    kept = [field.name for record in (Settled, Listed) for field in fields(record)]
    made = sha256(b"".join([*sealed, *(name.encode() for name in kept)])).hexdigest()[:16]
    assert (FORMAT, made) == (1, "7a0d7aaebf0f6034")


def altered(words):
    words[1] ^= np.uint64(1 << 40)


def wrapped(words):
    words.view("<u4")[:1] += np.uint32(1 << 31)


def scored(words):
    words[-4] += np.uint64(1)


def counted(words):
    words[-3] += np.uint64(1)


def shifted(words):
    words[:10] = np.roll(words[:10], 1)


def unused(words):
    words[0] ^= np.uint64(1 << 63)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("change", [altered, wrapped, scored, counted, shifted, unused])
def test_an_altered_sum_is_refused(federation, change, bits):
    some = federation(3, shape=replace(SHAPE, lanes=Lanes(bits))).begin()
    some.round(some.turn(1))
    turn = some.turn(2)
    data = bytearray(some.add(turn, some.seal(turn, some.draw())))
    change(np.frombuffer(data, "<u8", offset=Header.unpack(data)[1]))
    for job in some.jobs.values():
        with pytest.raises(ProtocolError, match=r"altered|pads|too many|too few"):
            job.open(turn, data)


def test_dropped_doubled_and_swapped_contributions_are_refused(federation):
    some = federation(4).begin()
    turn = some.turn(1)
    sealed = some.seal(turn, some.draw())
    header = sealed["client-00"][: Header.unpack(sealed["client-00"])[1]]
    packed = Header.unpack(header)[0].of("").pack()
    first, *others = map(body, sealed.values())
    for total in (sum(others), first + first + sum(others), first + first + sum(others[1:])):
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            some.jobs["client-00"].open(turn, packed + total.tobytes())


def test_a_stale_sum_is_refused(federation):
    some = federation(3).begin()
    first, second = some.turn(1), some.turn(2)
    data = some.add(first, some.seal(first, some.draw()))
    for job in some.jobs.values():
        job.open(first, data)
        job.settle()
    some.seal(second, some.draw(seed=1))
    job = some.jobs["client-00"]
    with pytest.raises(ProtocolError, match="stale"):
        job.open(second, data)
    with pytest.raises(ProtocolError, match="stale or out of order"):
        job.open(first, data)


@pytest.mark.parametrize("state", [b"another state than the others", STATE])
def test_members_with_different_models_cannot_be_summed(federation, state):
    some = federation(3).begin()
    turn = some.turn(1)
    data = some.add(turn, some.seal(turn, some.draw()))
    for name, job in some.jobs.items():
        job.open(turn, data)
        job.settle(state if name == "client-01" else STATE)
    second = some.turn(2)
    data = some.add(second, some.seal(second, some.draw(seed=1)))
    job = some.jobs["client-00"]
    if state == STATE:
        job.open(second, data)
    else:
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            job.open(second, data)


def test_members_with_different_lists_cannot_be_summed(federation):
    some = federation(5).begin()
    names = some.names
    some.weigh(1, names[:4])
    whole, less = some.turn(1), some.turn(1, attempt=1, members=names[:4])
    drawn = some.draw()
    sealed = {n: bytes(some.jobs[n].seal(less, *drawn[n])) for n in names[:4]}
    sealed[names[4]] = bytes(some.jobs[names[4]].seal(whole, *drawn[names[4]]))
    header = Header.unpack(sealed[names[0]])[0].of("").pack()
    total = sum(map(body, sealed.values()))
    for job in some.jobs.values():
        with pytest.raises(ProtocolError):
            job.open(less, header + total.tobytes())


def test_a_forged_sum_with_a_large_norm_is_refused(federation):
    some = federation(3, largest_step=1.0).begin()
    drawn = some.draw(size=3.0)
    turn = some.turn(1)
    data = some.add(turn, some.seal(turn, drawn))
    for job in some.jobs.values():
        with pytest.raises(ProtocolError, match="norm above the agreed 1"):
            job.open(turn, data)
