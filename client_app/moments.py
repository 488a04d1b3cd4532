"""The local optimiser's state between rounds, in what Flower keeps for a client during a run."""

from collections.abc import Mapping

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, RecordDict
from numpy.typing import NDArray

from client_app.records import to_arrays
from client_app.task import Task

_MOMENTS = "moments"
_MADE_IN = "moments-of"


def write_moments(
    state: RecordDict, task: Task, number: int, moments: Mapping[str, NDArray[np.float32]]
) -> None:
    """Keep the state that the optimiser had after a round."""
    state[_MOMENTS] = to_arrays(moments)
    state[_MADE_IN] = ConfigRecord({"run": task.run, "stage": task.stage, "round": number})


def read_moments(state: RecordDict, task: Task, number: int) -> dict[str, NDArray[np.float32]]:
    """State of the optimiser before a round; empty at the start of a run or of a stage."""
    made_in, moments = state.get(_MADE_IN), state.get(_MOMENTS)
    if not isinstance(made_in, ConfigRecord) or not isinstance(moments, ArrayRecord):
        return {}
    run, stage, last = (made_in.get(key) for key in ("run", "stage", "round"))
    is_earlier = isinstance(last, int) and last < number
    if (run, stage) != (task.run, task.stage) or not is_earlier:
        return {}
    return {name: array.numpy() for name, array in moments.items()}
