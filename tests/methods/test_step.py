import numpy as np
import pytest

from fedlap_app.errors import RunError
from fedlap_app.methods.step import kept, moved, pack_state, power, unpack_state, wide


def test_a_power_is_a_product():
    assert power(0.5, 10) == 2.0**-10
    assert power(0.9, 1000) == pytest.approx(0.9**1000, rel=1e-13)
    assert power(0.9, 0) == 1.0


def test_a_change_below_the_digits_of_float32_is_not_lost_on_its_way():
    model, mean = wide({"x": np.array([1.0], np.float32)}), {"x": np.array([2.0**-40])}
    assert (moved(model, mean)["x"] - model["x"] == mean["x"]).all()


def test_what_is_kept_is_float32_and_never_subnormal():
    values = np.array([1 / 3, 2.0**-101, -(2.0**-140), 2.0**-99])
    small = kept({"x": values})["x"]
    assert small.dtype == np.float32
    assert small.tolist() == [np.float32(1 / 3), 0.0, 0.0, 2.0**-99]
    assert not np.signbit(small).any()


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_step_that_is_not_finite_is_refused(value):
    with pytest.raises(RunError, match="numbers in 'x' that are not finite"):
        kept({"x": np.array([value])})


def test_a_state_comes_back_as_it_was():
    state = {"model": kept({"a/b": np.ones((2, 3)), "c": np.zeros(0)}), "momentum": {}}
    packed = pack_state(state)
    found = unpack_state(packed)
    assert found["model"]["a/b"].tolist() == np.ones((2, 3)).tolist()
    assert pack_state(found) == packed
