"""Calibrated probabilities: right as often as they say."""

import numpy as np
import pytest

from fedlap_app.models.calibration import TEMPERATURES, temperature_of, tempered


@pytest.fixture
def drawn():
    """Classes drawn from known probabilities."""
    rng = np.random.default_rng(0)
    logits = 2.0 * rng.standard_normal((4000, 4))
    truth = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return logits, truth


@pytest.mark.parametrize("sharpened", [0.5, 1.0, 3.0])
def test_the_temperature_undoes_what_made_a_model_too_sure(drawn, sharpened):
    logits, truth = drawn
    found = temperature_of(tempered(sharpened * logits, 1.0), truth)
    assert found == pytest.approx(sharpened, rel=0.06)


def test_probabilities_then_say_how_often_they_are_right(drawn):
    logits, truth = drawn
    sure = tempered(4.0 * logits, 1.0)
    calm = np.exp(tempered(sure, temperature_of(sure[:2000], truth[:2000])))
    right = calm.argmax(axis=1) == truth
    assert abs(calm.max(axis=1)[2000:].mean() - right[2000:].mean()) < 0.03
    assert abs(np.exp(sure).max(axis=1)[2000:].mean() - right[2000:].mean()) > 0.1
    np.testing.assert_allclose(calm.sum(axis=1), 1.0)
    assert np.array_equal(calm.argmax(axis=1), sure.argmax(axis=1))


def test_few_nodes_change_little():
    logits = np.log(np.array([[0.9, 0.1]]))
    assert temperature_of(logits, np.array([0])) == pytest.approx(1.0, abs=0.05)
    assert temperature_of(logits[:0], np.zeros(0, np.int64)) == 1.0
    assert TEMPERATURES[60] == pytest.approx(1.0)
