from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.sums.checks import SLOTS
from fedlap_app.sums.lanes import Lanes
from fedlap_app.sums.training.shape import ROOM, SumShape, Tensor
from tests.sums.training.federation import SHAPE


@pytest.mark.parametrize("count", [2, 3, 10, 50])
def test_sums_are_the_weighted_mean_within_the_resolution(federation, count):
    weights = np.random.default_rng(1).integers(1, 300, count).astype(float)
    some = federation(count, weights=weights).begin()
    drawn = some.draw(seed=count)
    opened = some.round(some.turn(1), drawn)
    for tensor in SHAPE.tensors:
        changes = [drawn[name][0][tensor.name].astype(float) for name in some.names]
        mean = np.average(changes, axis=0, weights=weights)
        for each in opened.values():
            error = np.abs(each.mean[tensor.name] - mean).max()
            assert error <= count / 2 * 2.0**-tensor.bits * (1 + 1e-6)
    totals = sum(drawn[name][1] for name in some.names)
    assert all((each.totals == totals).all() for each in opened.values())


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 40),
    st.integers(1, 50),
    st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=9),
)
def test_what_fits_does_not_depend_on_the_number_of_members(bits, count, values):
    tensor = Tensor("x", (len(values),), bits)
    shape = SumShape((tensor,), 1)
    change = np.array(values) * np.nextafter(tensor.limit, 0)
    parts = [shape.encode({"x": change}, 1 / count, [1.0], count) for _ in range(count)]
    words = sum(parts)
    words[: shape.narrow] = sum(part[: shape.narrow].view("<u4") for part in parts).view("<u8")
    error = np.abs(shape.mean(words)["x"] - change).max()
    assert error <= count / 2 * 2.0**-bits + 1e-9 * tensor.limit
    assert shape.totals(words).tolist() == [count]


@pytest.mark.parametrize("value", [7.9999999, -8.0, 1e30, np.inf, np.nan])
def test_an_update_out_of_range_is_a_sentence_and_nothing_is_lost(federation, value):
    some = federation(3).begin()
    turn, drawn = some.turn(1), some.draw()
    job = some.jobs["client-00"]
    change, scores = drawn["client-00"]
    with pytest.raises(RunError, match=r"change of 'b' in one round is not below 7\.9999") as error:
        job.seal(turn, {**change, "b": np.full(4, value)}, scores)
    assert str(value) not in str(error.value)
    assert job.stored(turn) is None
    some.round(turn, drawn)


def test_a_change_of_another_shape_is_refused(federation):
    some = federation(3).begin()
    change, scores = some.draw()["client-00"]
    job = some.jobs["client-00"]
    with pytest.raises(ProtocolError, match="change of 'A' is missing"):
        job.seal(some.turn(1), {"b": change["b"]}, scores)
    with pytest.raises(ProtocolError, match="5 scores came for a sum of 6"):
        job.seal(some.turn(1), change, scores[:5])


def test_the_norm_of_a_mean_is_bounded_exactly():
    shape = SumShape((Tensor("x", (2,), 20), Tensor("y", (1,), 24)), 0)
    words = shape.encode({"x": np.array([3.0, -4.0]), "y": np.array([12.0])}, 1.0, [], 1)
    shape.require_small(words, 13.0)
    with pytest.raises(ProtocolError, match="norm above the agreed"):
        shape.require_small(words, 13.0 - 2.0**-23)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=30))
def test_the_norm_holds_for_all_words(numbers):
    shape = SumShape((Tensor("x", (len(numbers),), 0),), 0)
    words = np.zeros(shape.narrow + SLOTS, "<u8")
    words.view("<i4")[: len(numbers)] = numbers
    squared = sum(Fraction(number) ** 2 for number in numbers)
    root = float(squared) ** 0.5
    shape.require_small(words, root * (1 + 1e-9) + 1)
    if squared > 4:
        with pytest.raises(ProtocolError):
            shape.require_small(words, root * (1 - 1e-9) - 1)


def narrow(bits):
    return replace(SHAPE, lanes=Lanes(bits))


@pytest.mark.parametrize("bits", [16, 12])
def test_a_narrow_ring_holds_the_mean_to_a_part_of_the_last_one_of_each_row(federation, bits):
    shape, count = narrow(bits), 5
    some = federation(count, shape=shape).begin()
    drawn = some.draw(seed=3)
    for change, _ in drawn.values():
        change["A"][1] *= 1e-5  # rows have scales of their own
    first = some.round(some.turn(1), drawn)["client-00"]
    found = some.round(some.turn(2), drawn)["client-00"]
    share = np.array([*some.weights.values()]) / sum(some.weights.values())
    for name in ("A", "b"):
        changes = [change[name].astype(float) for change, _ in drawn.values()]
        mean = np.average(changes, axis=0, weights=share)
        # A step is at most ROOM * 2 of the largest of the row in 2^(bits - 1), and K are lost.
        rows = np.abs(first.mean[name]).reshape(-1, mean.shape[-1]).max(axis=1)
        rows = np.maximum(rows, rows.max() / 64)
        error = np.abs(found.mean[name] - mean).reshape(-1, mean.shape[-1]).max(axis=1)
        assert (error <= count * 2 * ROOM * rows * 2.0 ** (1 - bits) * 1.001).all()
        assert (error > 0).any()


@pytest.mark.parametrize("bits", [16, 12])
def test_a_change_beyond_its_row_is_cut_off_and_never_wraps(bits):
    shape, count = narrow(bits), 40
    scales = shape.scales_after({"A": np.ones((3, 5)), "b": np.ones(4)})
    scaled = shape.scaled(scales)
    huge = {"A": np.full((3, 5), 1e6), "b": np.full(4, -1e6)}
    total = scaled.encode(huge, 1 / count, [0.0] * 6, count)
    for _ in range(count - 1):
        part = scaled.encode(huge, 1 / count, [0.0] * 6, count)
        shape.lanes.add(total[: shape.narrow], part[: shape.narrow])
    mean = scaled.mean(total)
    assert ROOM * 0.9 <= mean["A"].min() <= mean["A"].max() <= 2 * ROOM
    assert ROOM * 0.9 <= -mean["b"].max() <= -mean["b"].min() <= 2 * ROOM
    with pytest.raises(RunError, match="larger training-ring"):
        scaled.encode(huge, 1.0, [0.0] * 6, (1 << bits - 2) + 1)
    with pytest.raises(RunError, match="not finite"):
        scaled.encode({**huge, "b": np.full(4, np.nan)}, 1.0, [0.0] * 6, 2)


def test_a_row_that_did_not_change_can_change_again():
    shape = narrow(16)
    for mean in (
        {"A": np.zeros((3, 5)), "b": np.ones(4)},
        {"A": np.zeros((3, 5)), "b": np.zeros(4)},
    ):
        scaled = shape.scaled(shape.scales_after(mean))
        words = scaled.encode({"A": np.full((3, 5), 0.01), "b": np.zeros(4)}, 1.0, [0.0] * 6, 1)
        assert scaled.mean(words)["A"] == pytest.approx(0.01, abs=1e-4)


def test_small_entries_are_rounded_by_lot_and_not_lost():
    shape = narrow(12)
    scaled = shape.scaled(shape.scales_after({"A": np.ones((3, 5)), "b": np.ones(4)}))
    change = {"A": np.full((3, 5), 1e-3), "b": np.zeros(4)}  # a quarter of a step
    found = [
        scaled.mean(scaled.encode(change, 1.0, [0.0] * 6, 1, lot=lot))["A"].mean()
        for lot in range(400)
    ]
    assert np.mean(found) == pytest.approx(1e-3, rel=0.1)
    assert np.std(found) > 0


def test_a_trained_model_and_its_change_give_the_same_words():
    rng = np.random.default_rng(4)
    shape = SumShape((Tensor("x", (3, 7000)),), 2)
    before, change = (rng.normal(size=(3, 7000), scale=s).astype(np.float32) for s in (1, 1e-3))
    after = before + change
    wide = np.subtract(after, before, dtype=np.float64)
    one = shape.encode({"x": wide}, 0.3, [1.0, 2.0], 3)
    assert (shape.encode({"x": after}, 0.3, [1.0, 2.0], 3, {"x": before}) == one).all()
