"""What organisations tell the server beside their models, where training is plain."""

import numpy as np
import pytest

from fedlap_app.errors import RunError
from fedlap_app.flower.records import from_arrays
from fedlap_app.methods.base import Schema
from fedlap_app.methods.hinting import HINT
from fedlap_app.methods.registry import method_class
from tests.adversary.dishonest import Coordinator, settings_of, watching, write_organisations


def test_no_prediction_is_in_the_last_digits_of_a_moment(tmp_path):
    """A unit fires for one node, and raises its prediction by less than a moment is told with."""
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    part, told = subgraphs[0], []
    column = np.sort(np.asarray(part.features)[:, 0])
    for strength in (0.0, 1e-3):
        server = Coordinator(folders, settings_of(method="fedgta", learning_rate=1e-8))
        assert not isinstance(server.join(), str)
        reply = server.train(watching(part, 0, (column[-1] + column[-2]) / 2, strength))
        told.append(from_arrays(reply.array_records[HINT]))
    assert all(np.array_equal(told[0][name], told[1][name]) for name in told[0])
    moments = told[0]["moments"]
    assert np.array_equal(moments, moments.round(3))


@pytest.mark.parametrize(
    "told",
    [
        {"moments": np.ones(3), "confidence": np.ones(1)},
        {"moments": np.ones(2), "confidence": np.ones(0)},
        {"moments": np.ones(2), "confidence": np.ones((1, 1))},
        {"moments": np.ones(2), "confidence": np.array([1e300])},
        {"moments": np.array([np.nan, 1.0]), "confidence": np.ones(1)},
        {"moments": np.ones(2)},
    ],
)
def test_hints_that_others_cannot_be_compared_with_name_their_sender(told):
    method = method_class("fedgta").of(settings_of(method="fedgta"))
    state = method.start(Schema(4, 2), 0, {})
    honest = {"moments": np.ones(2), "confidence": np.ones(1)}
    updates = {
        name: {"arrays": state.model, HINT: hint} for name, hint in (("a", honest), ("b", told))
    }
    with pytest.raises(RunError, match="b returned no confidence, moments"):
        method.join(state, state.model, updates)
