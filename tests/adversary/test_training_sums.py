"""A server that has one member on its side, against sealed training: what is left to them.

It holds that member's keys, so it opens every sum and can make sums of its own.
"""

import shutil

import numpy as np
import pytest

from fedlap_app.errors import ConsentError, ProtocolError
from fedlap_app.sums.checks import PRIME, SLOTS
from fedlap_app.sums.header import Header
from fedlap_app.sums.training import sealing
from fedlap_app.sums.training.agreed import WEIGHT_SUM, weights_place
from fedlap_app.sums.training.publication import Counts, counts_place, counts_shape, published
from fedlap_app.sums.training.shape import SumShape, Tensor
from tests.sums.training.federation import SHAPE, Federation

from .scene import is_uniform

ACCOMPLICE = "client-00"


@pytest.fixture
def federation(tmp_path):
    """Six members whose means may have a norm of one half."""
    return Federation(tmp_path / "run", 6, largest_step=0.5, shape=SHAPE).begin()


def flat(mean):
    return np.concatenate([mean[tensor.name].reshape(-1) for tensor in SHAPE.tensors])


def forged(some, turn, mean):
    """A sum of a server and a member that all others will take for right."""
    words = SHAPE.encode(mean, 1.0, [0.0] * SHAPE.scores, len(turn.members))
    return sealed_alone(some, turn.place, turn.members, SHAPE, words)


def forged_weights(some, total):
    """The same for the sum of the weights of all."""
    words = WEIGHT_SUM.encode({}, 0.0, [total], len(some.names))
    return sealed_alone(some, weights_place(0, 0), some.names, WEIGHT_SUM, words)


def sealed_alone(some, place, members, shape, words):
    """A sum of such words, as one member can make it with the keys of the group."""
    sealer = sealing.Sealer(some.rings[ACCOMPLICE])
    header = sealer.header(place, members, shape)
    context = sealing._context(header, members, some.jobs[ACCOMPLICE].settled.chain)
    weights, count = sealer._check_weights(context), len(members)
    inner = sealing._drawn(weights.key).inner_product(words[:-SLOTS].view(np.int64), shape.narrow)
    check = (inner + count * weights.ones[""]) % PRIME
    words[-SLOTS:] = count, check & 0xFFFFFFFF, check >> 32
    sealer._pad(words, shape, context, [""], [])
    return header.pack() + words.tobytes()


def test_a_forged_sum_moves_the_model_by_the_agreed_norm_at_most(federation):
    some, turn = federation, federation.turn(1)
    some.seal(turn, some.draw(size=0.1))
    for norm in (0.49, 0.51, 3.0):
        mean = {tensor.name: np.ones(tensor.shape) * norm / 19**0.5 for tensor in SHAPE.tensors}
        data = forged(some, turn, mean)
        for job in some.jobs.values():
            if norm > 0.5:
                with pytest.raises(ProtocolError, match="norm above the agreed"):
                    job.open(turn, data)
            else:
                assert np.linalg.norm(flat(job.open(turn, data).mean)) == pytest.approx(norm)


def test_one_forged_sum_a_round_and_the_same_for_all(federation):
    some, turn = federation, federation.turn(1)
    drawn = some.draw(size=0.1)
    data = some.add(turn, some.seal(turn, drawn))
    other = forged(some, turn, {t.name: np.full(t.shape, 0.1) for t in SHAPE.tensors})
    for name, job in some.jobs.items():
        job.open(turn, other if name == "client-01" else data)
        job.settle()
        with pytest.raises(ProtocolError, match="out of order"):
            job.open(turn, other)
    second = some.turn(2)
    total = some.add(second, some.seal(second, drawn))
    for job in some.jobs.values():
        with pytest.raises(ProtocolError, match="pads do not cancel"):
            job.open(second, total)


def test_the_sums_over_two_lists_show_who_was_left_out_and_no_third_pair_comes(federation):
    some, drawn = federation, federation.draw(size=0.1)
    sums, weights = [], []
    for attempt, names in enumerate((some.names, some.names[:5], some.names[:4])):
        if attempt:
            some.weigh(attempt, names)
        turn = some.turn(1, attempt=attempt, members=names)
        data = some.add(turn, some.seal(turn, drawn))
        sums.append(flat(some.jobs[ACCOMPLICE].open(turn, data).mean))
        weights.append(sum(some.weights[name] for name in names))
    for attempt, victim in ((1, some.names[5]), (2, some.names[4])):
        # This is what is left: an update of one member for each change of the list.
        lost = weights[attempt - 1] * sums[attempt - 1] - weights[attempt] * sums[attempt]
        found = lost / some.weights[victim]
        assert np.abs(found - flat(drawn[victim][0])).max() < 1e-5
    with pytest.raises(ConsentError, match="list-changes"):
        some.jobs["client-01"].weigh(3, some.names[:3], 1.0)


def test_counts_over_two_lists_are_never_there_to_be_subtracted(federation):
    some, drawn = federation, federation.draw(size=0.1)
    victim, left = some.names[5], some.names[:5]
    whole, smaller = some.turn(1), some.turn(1, attempt=1, members=left)
    data = some.add(whole, some.seal(whole, drawn))
    some.weigh(1, left)
    other = some.add(smaller, some.seal(smaller, drawn))
    parts = {}
    for name, job in some.jobs.items():
        # The victim takes the sum over all; the others never will, but for that without it.
        job.open(*((whole, data) if name == victim else (smaller, other)))
        job.settle(b"scored")
        parts[name] = job.tell([Counts(900, 700) if name == victim else Counts(800, 650)])
    adder = some.adder(counts_place(0, 1), left, counts_shape(1))
    for name in left:
        adder.add(name, parts[name])
    assert published(adder.result(), ("test",), 5) == {"test": (800, 650)}
    with pytest.raises(ProtocolError, match="misrouted or altered"):
        some.adder(counts_place(0, 0), some.names, counts_shape(1)).add(left[0], parts[left[0]])
    # Nor do the parts of any who were told the same add up, whatever header they get.
    words = [np.frombuffer(part, "<u8", offset=Header.unpack(part)[1]) for part in parts.values()]
    for count in range(1, 7):
        total = sum(words[-count:])
        assert (total[1:4] > 1 << 32).all()


def test_a_store_that_was_set_back_seals_the_same_bytes(federation):
    some, victim = federation, "client-03"
    before, drawn = some.root / "before", some.draw(size=0.1)
    shutil.copytree(some.root / victim, before)
    turn = some.turn(1)
    sealed = some.seal(turn, drawn)[victim]
    some.round(turn, drawn)
    shutil.rmtree(some.root / victim)
    before.rename(some.root / victim)
    with pytest.raises(ProtocolError, match="data of 'client-03' changed"):
        some.job(victim, data="other data").seal(turn, *drawn[victim])
    assert some.job(victim).seal(turn, *drawn[victim]) == sealed


def test_another_sum_of_weights_draws_other_pads(tmp_path):
    """Changes are scaled by it: a store that was set back would seal another multiple of one."""
    shape, victim = SumShape((Tensor("A", (40, 50)),), 1), "client-03"
    some = Federation(tmp_path / "run", 6, shape=shape)
    for job in some.jobs.values():
        job.begin(0, b"a state")
        job.weigh(0, some.names, some.weights[job.keys.me])
    shutil.copytree(some.root / victim, some.root / "before")
    drawn, turn, sealed = some.draw(size=0.1)[victim], some.turn(1), []
    for total in (21.0, 42.0):
        some.jobs[victim].take_weights(forged_weights(some, total))
        data = some.jobs[victim].seal(turn, *drawn)
        sealed.append(np.frombuffer(data[Header.unpack(data)[1] :], "<u8"))
        shutil.rmtree(some.root / victim)
        shutil.copytree(some.root / "before", some.root / victim)
        some.jobs[victim] = some.job(victim)
    assert is_uniform(sealed[1] - sealed[0])


def test_a_sum_of_weights_below_the_own_one_is_refused(federation):
    """By it a change would grow beyond what the words of a sum hold."""
    some, victim = federation, "client-03"
    shutil.rmtree(some.root / victim)
    job = some.jobs[victim] = some.job(victim)
    job.begin(0, b"a state that all have worked out")
    job.weigh(0, some.names, some.weights[victim])
    with pytest.raises(ProtocolError, match="below the own one"):
        job.take_weights(forged_weights(some, some.weights[victim] - 1))
    job.take_weights(forged_weights(some, some.weights[victim]))
