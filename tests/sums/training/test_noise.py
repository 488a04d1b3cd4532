"""Noise on updates: its size in the opened sum, clipping, and what an attack learns under it."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.settings import Settings
from fedlap_app.sums.training.noise import NodeNoise, Noise, discrete_gaussian
from fedlap_app.sums.training.shape import SumShape, Tensor

LARGE = SumShape((Tensor("A", (100, 150)), Tensor("b", (1000,), bits=26)), 2)


def noisy(federation, count, noise, **more):
    """A federation whose changes get noise."""
    made = federation(count, shape=LARGE, **more)
    made.agreed = replace(made.agreed, noise=noise)
    made.jobs = {name: made.job(name) for name in made.names}
    return made.begin()


def opened(made, changes, turn):
    """Mean of the changes as every member opens it."""
    adder = made.adder(turn.place, turn.members, LARGE)
    for name in turn.members:
        adder.add(name, made.jobs[name].seal(turn, changes[name], [1.0, 2.0]))
    return made.jobs[turn.members[0]].open(turn, adder.result())


def zeros():
    return {tensor.name: np.zeros(tensor.shape) for tensor in LARGE.tensors}


def test_the_sampler_draws_the_discrete_gaussian():
    """Frequencies of a small one against its probabilities, moments of a large one."""
    drawn = discrete_gaussian(1.5, 40_000)
    numbers = np.arange(-5, 6)
    weights = np.exp(-(np.arange(-40, 41) ** 2) / (2 * 1.5**2))
    expected = np.exp(-(numbers**2) / (2 * 1.5**2)) / weights.sum()
    counts = np.array([(drawn == number).sum() for number in numbers])
    rest = drawn.size - counts.sum()
    observed = np.append(counts, rest)
    probabilities = np.append(expected, 1 - expected.sum())
    assert stats.chisquare(observed, probabilities * drawn.size).pvalue > 1e-6
    large = discrete_gaussian(20_000.0, 40_000)
    assert stats.kstest(large, "norm", args=(0, 20_000.0)).pvalue > 1e-6
    assert not np.array_equal(large, discrete_gaussian(20_000.0, 40_000))


@pytest.mark.parametrize("colluders", [0, 2])
def test_the_opened_sum_has_the_stated_noise(federation, colluders):
    """All contribute, and those who do not collude have the whole deviation among them."""
    made = noisy(federation, 5, Noise(clip=2.0, multiplier=0.5, colluders=colluders))
    found = opened(made, dict.fromkeys(made.names, zeros()), made.turn(1))
    stated = 0.5 * 2.0 / 5 * math.sqrt(5 / (5 - colluders))
    for tensor in LARGE.tensors:
        measured = found.mean[tensor.name].std()
        assert abs(measured / stated - 1) < 5 / math.sqrt(2 * tensor.size)
    assert found.totals.tolist() == [5.0, 10.0]


@pytest.mark.parametrize("claimed", [3.0, 3e4])
def test_a_nodes_part_and_the_noise_have_one_measure(federation, claimed):
    """Of all training nodes together; who claims more of them makes both smaller alike."""
    noise = NodeNoise(clip=2.0, multiplier=0.5, colluders=1)
    made = noisy(federation, 3, noise, weights=[2.0, 4.0, claimed])
    found = opened(made, dict.fromkeys(made.names, zeros()), made.turn(1))
    total = 6.0 + claimed
    stated = 0.5 * noise.reach(total, 3, LARGE) * math.sqrt(3 / 2)
    assert stated >= 0.5 * 2.0 / total * math.sqrt(3 / 2)
    for tensor in LARGE.tensors:
        measured = found.mean[tensor.name].std()
        assert abs(measured / stated - 1) < 5 / math.sqrt(2 * tensor.size)
    # One gradient as long as it may be, of the two that its member has the mean of.
    change = {**zeros(), "b": np.eye(1, 1000)[0] * 2.0 / 2.0}
    part = LARGE.mean(LARGE.encode(change, noise.share(2.0, total, 3), [0.0, 0.0], 3))["b"]
    assert np.linalg.norm(part) <= noise.reach(total, 3, LARGE)
    assert np.linalg.norm(part) == pytest.approx(2.0 / total, rel=1e-3)


def test_rounding_is_part_of_what_a_node_can_change():
    """Two sums that differ by one clipped gradient, each number rounded by itself."""
    noise, total = NodeNoise(clip=1e-3, multiplier=1.0, colluders=0), 50.0
    rng = np.random.default_rng(5)
    coarse = SumShape((Tensor("A", (100, 150), bits=12),), 0)
    before = rng.normal(size=(100, 150))
    for _ in range(5):
        gradient = rng.normal(size=(100, 150))
        gradient *= noise.clip / np.linalg.norm(gradient)
        one, other = (
            coarse.mean(coarse.encode({"A": change}, 1.0 / total, [], 3))["A"]
            for change in (before, before + gradient)
        )
        assert noise.clip / total < np.linalg.norm(one - other) <= noise.reach(total, 3, coarse)


def test_who_is_absent_is_made_up_for(federation):
    """A smaller list draws as much for its own mean."""
    made = noisy(federation, 5, Noise(clip=1.0, multiplier=1.0, colluders=1))
    fewer = made.names[:4]
    made.weigh(1, fewer)
    found = opened(made, dict.fromkeys(made.names, zeros()), made.turn(1, attempt=1, members=fewer))
    honest = found.mean["A"].std() * math.sqrt(3 / 4)
    assert abs(honest / (1.0 / 4) - 1) < 0.05


def test_no_update_is_longer_than_the_norm(federation):
    """One forged a thousand times too long, whose member claims most of the weight, counts once."""
    noise = Noise(clip=3.0, multiplier=1e-3, colluders=0)
    made = noisy(federation, 3, noise, weights=[1e6, 1.0, 1.0])
    changes = dict.fromkeys(made.names, zeros())
    changes[made.names[0]] = {name: value + 1e3 for name, value in zeros().items()}
    found = opened(made, changes, made.turn(1))
    norm = math.sqrt(sum(float((value**2).sum()) for value in found.mean.values()))
    assert abs(norm - 1.0) < 0.05
    cut = noise.clipped(changes[made.names[0]], {}, LARGE.tensors, 1 / 3)
    assert math.sqrt(sum(float((value**2).sum()) for value in cut.values())) <= 3.0


def test_what_is_no_number_leaves_as_nothing():
    broken = {**zeros(), "b": np.full(1000, np.nan)}
    cut = Noise(1.0, 1.0, 0).clipped(broken, {}, LARGE.tensors, 0.5)
    assert all(not value.any() for value in cut.values())


def test_the_same_question_gets_the_same_noise(federation):
    made = noisy(federation, 3, Noise(clip=1.0, multiplier=1.0, colluders=0))
    turn, name = made.turn(1), made.names[0]
    first = bytes(made.jobs[name].seal(turn, zeros(), [1.0, 2.0]))
    again = made.job(name)
    assert bytes(again.stored(turn)) == first


@pytest.mark.parametrize(("kind", "total"), [(Noise, 9.0), (NodeNoise, 40.0)])
def test_an_attack_on_a_unit_stays_below_the_bound(kind, total):
    """Whether a member, or one training node of 40, took part with the longest of all updates."""
    from fedlap_app.privacy.accounting import epsilon

    noise, shape = kind(clip=1.0, multiplier=2.0, colluders=1), (Tensor("w", (4000,)),)
    small = SumShape(shape, 0)
    count, members = small.tensors[0].size, 3
    update = np.zeros(count)
    update[::2] = 1.0  # every second of these sums holds the whole norm in one number
    share = noise.share(1.0, total, members)
    words = small.encode({"w": update}, share, [], members)
    for _ in range(members - noise.colluders):  # who colludes takes its own noise off
        noise.add(words, small, members, total)
    seen = small.mean(words)["w"]
    held, without = seen[::2], seen[1::2]
    thresholds = np.linspace(-1.5, 3.0, 60) * share
    bound = math.exp(epsilon(2.0, 1, 1e-3))
    slack = 5 * math.sqrt(0.25 / held.size) * 2
    for threshold in thresholds:
        right, wrong = (held > threshold).mean(), (without > threshold).mean()
        assert right <= bound * wrong + 1e-3 + slack
        assert right - wrong <= 2 * stats.norm.cdf(1 / (2 * 2.0)) - 1 + slack
    best = max((held > t).mean() - (without > t).mean() for t in thresholds)
    assert best > 0.1  # the attack is a real one


def test_noise_that_protects_nobody_is_refused():
    with pytest.raises(RunError, match="nobody would be left"):
        Noise(1.0, 1.0, 3).deviation(3, 1.0)
    with pytest.raises(RunError, match="raise training-bits"):
        Noise(1e-6, 1.0, 0).add(LARGE.encode(zeros(), 1.0, [0.0, 0.0], 3), LARGE, 3)
    with pytest.raises(ConfigError, match="set training-bits = "):
        replace(Settings(), dp_noise=100.0, dp_clip=10.0)
    with pytest.raises(ConfigError, match="set training-ring = 32"):
        replace(Settings(), dp_noise=1.0, training_ring=16)


NODES = {"dp_noise": 1.0, "dp_unit": "node", "optimizer_at": "server", "local_epochs": 1}
APART = {"model": "decoupled", "hops": 0}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "'sage' reads neighbours"),
        ({"branches": "decoupled,mlp"}, "'decoupled' reads neighbours"),
        ({"model": "decoupled", "hops": 1}, "hops = 0"),
        ({**APART, "optimizer_at": "client"}, "set optimizer-at = 'server'"),
        ({**APART, "class_weights": "balanced"}, "set class-weights = 'none'"),
        ({**APART, "weight_by": "nodes"}, "set weight-by = 'labelled'"),
        ({**APART, "programs": "krylov,neighbour-sums"}, "the program neighbour-sums"),
        ({**APART, "method": "fedgcn"}, "the program neighbour-sums"),
        ({**APART, "method": "fedgcn", "raw_ball": True}, "the data of all"),
    ],
)
def test_models_whose_examples_share_inputs_hide_no_node(changes, says):
    with pytest.raises(ConfigError, match=says):
        replace(Settings(), **{**NODES, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        APART,
        {"model": "none"},
        {"branches": "mlp"},
        {"method": "mlp"},
        {**APART, "method": "fedavg"},
        {**APART, "method": "fedsgd", "optimizer_at": "client"},
    ],
)
def test_models_whose_examples_are_apart_are_taken(changes):
    assert replace(Settings(), **{**NODES, **changes}).promise.by_example
