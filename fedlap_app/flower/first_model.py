"""The model that training begins with: a fresh one, or that of an earlier run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.methods.base import State
from fedlap_app.models.model_file import FILE, ModelFile
from fedlap_app.models.specs import BRANCH_WEIGHTS, FEATURE_WEIGHT

_CHOSEN = (FEATURE_WEIGHT, BRANCH_WEIGHTS)  # by validation, of every training anew


def earlier_model(path: Path) -> Mapping[str, Any]:
    """Parameters of the model of an earlier run.

    Parameters
    ----------
    path
        The run folder, or an organisation's folder of that training.
    """
    try:
        return ModelFile.from_bytes((path / FILE).read_bytes(), FILE).parameters
    except OSError as error:
        raise ConfigError(
            f"start-model names a run whose model cannot be read ({error.strerror}): name one "
            "that all organisations still keep"
        ) from None


def begun_with(state: State, found: Mapping[str, Any]) -> State:
    """The state before the first round, with the parameters of an earlier model.

    Parameters
    ----------
    state
        With a fresh model; what validation chooses stays.
    found
        The earlier parameters; empty: none.
    """
    if not found:
        return state
    fresh = {name: value for name, value in state.model.items() if name not in _CHOSEN}
    differing = [
        name
        for name, value in fresh.items()
        if name not in found or np.shape(found[name]) != np.shape(value)
    ]
    if differing:
        raise ConfigError(
            f"the model of start-model differs from that of this run in {differing[0]}: give both "
            "runs the same layers, or leave start-model out"
        )
    return replace(state, model={**state.model, **{name: found[name] for name in fresh}})
