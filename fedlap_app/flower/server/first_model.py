"""The model that training begins with: a fresh one, or that of an earlier run."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.methods.base import State
from fedlap_app.models.model_file import FILE, ModelFile
from fedlap_app.models.specs import FEATURE_WEIGHT


def begun_with(state: State, run_folder: str) -> State:
    """The state before the first round, with the model of an earlier run if one is named.

    Parameters
    ----------
    state
        With a fresh model, whose weight of the feature model stays.
    run_folder
        Folder of the earlier run; empty: none.
    """
    if not run_folder:
        return state
    path = Path(run_folder) / FILE
    try:
        found = ModelFile.from_bytes(path.read_bytes(), str(path)).parameters
    except OSError as error:
        raise ConfigError(
            f"start-model = '{run_folder}' holds no model that can be read ({error.strerror}): "
            "name the folder of a run with a global model"
        ) from None
    fresh = {name: value for name, value in state.model.items() if name != FEATURE_WEIGHT}
    differing = [
        name
        for name, value in fresh.items()
        if name not in found or np.shape(found[name]) != np.shape(value)
    ]
    if differing:
        raise ConfigError(
            f"the model of start-model = '{run_folder}' differs from that of this run in "
            f"{differing[0]}: give both runs the same layers, or leave start-model out"
        )
    return replace(state, model={**state.model, **{name: found[name] for name in fresh}})
