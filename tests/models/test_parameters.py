"""Parameters in and out of a model."""

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError
from fedlap_app.models.networks import build_model
from fedlap_app.models.parameters import load_parameters, parameters_of
from fedlap_app.models.specs import ModelSpec

SPEC = ModelSpec("gcn", 5, 3)
BIAS = "layers.1.bias"


def test_what_goes_out_comes_in():
    source, target = build_model(SPEC, seed=0), build_model(SPEC, seed=1)
    sent = parameters_of(source)
    load_parameters(target, sent)
    received = parameters_of(target)
    assert list(sent) == list(received)
    assert all(np.array_equal(sent[name], received[name]) for name in sent)


def test_arrays_are_copies():
    model = build_model(SPEC, seed=0)
    taken = parameters_of(model)
    taken[BIAS][:] = 9
    load_parameters(model, taken)
    taken[BIAS][:] = 8
    assert (parameters_of(model)[BIAS] == 9).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"extra": np.zeros(3)}, "unknown .'extra'"),
        ({BIAS: np.zeros(4)}, r"shape \(4,\) and the model's has \(3,\)"),
        ({BIAS: np.array([0.0, np.nan, 0.0])}, "not finite"),
        ({BIAS: np.array([0.0, np.inf, 0.0])}, "not finite"),
        ({BIAS: np.array([0.0, 1e300, 0.0])}, "not finite"),
        ({BIAS: np.array(["a", "b", "c"])}, "not finite"),
        ({BIAS: None}, "lack .'layers.1.bias'"),
    ],
)
def test_bad_parameters_are_refused_and_the_model_is_unchanged(change, named):
    model = build_model(SPEC, seed=0)
    before = parameters_of(model)
    sent = parameters_of(build_model(SPEC, seed=1)) | change
    sent = {name: value for name, value in sent.items() if value is not None}
    with pytest.raises(ProtocolError, match=named):
        load_parameters(model, sent)
    after = parameters_of(model)
    assert all(np.array_equal(before[name], after[name]) for name in before)
