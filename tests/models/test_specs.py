"""Limits of the settings."""

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.models.specs import ModelSpec, TrainSpec


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "gat"}, "'gat'; choose one of sage, gcn, decoupled"),
        ({"num_features": -1}, "-1"),
        ({"num_classes": 0}, "classes is 0"),
        ({"hidden": (64, 0)}, "width is 0"),
        ({"hops": -1}, "hops is -1"),
        ({"dropout": 1.0}, "dropout is 1.0"),
        ({"input_dropout": -0.1}, "input dropout is -0.1"),
        ({"dropout": float("nan")}, "dropout is nan"),
    ],
)
def test_a_bad_model_is_named(change, named):
    with pytest.raises(ConfigError, match=named):
        ModelSpec(**({"kind": "sage", "num_features": 3, "num_classes": 2} | change))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epochs": 0}, "epochs is 0"),
        ({"epochs": True}, "epochs is True"),
        ({"optimizer": "lion"}, "'lion'; choose one of adam, sgd"),
        ({"learning_rate": 0.0}, "learning rate is 0.0"),
        ({"learning_rate": float("inf")}, "learning rate is inf"),
        ({"weight_decay": -1.0}, "weight decay is -1.0"),
    ],
)
def test_a_bad_training_is_named(change, named):
    with pytest.raises(ConfigError, match=named):
        TrainSpec(**change)
