"""The state that all members of a federation work out alike, bit for bit.

Every step begins with the exact mean of a sum of whole numbers and goes on in float64 with
+ - * / and roots, which IEEE 754 rounds in one way only, one array operation after the other.
Powers, which every library computes in its own way, are products. What is kept is rounded to
float32, and numbers near the smallest ones are kept as zero: some processors are told to treat
those as zero while they compute.
"""

from collections.abc import Mapping
from itertools import repeat
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import RunError
from fedlap_app.store.job_files import pack_arrays, unpack_arrays
from fedlap_app.store.packing import Data

MODEL = "model"
_SMALLEST = 2.0**-100
_BETWEEN = "/"

Floats = NDArray[np.float64]
Kept = Mapping[str, NDArray[np.float32]]
State = Mapping[str, Kept]
"""Named arrays by what they are: the model, and what the method remembers besides."""


def power(base: float, exponent: int) -> float:
    """A power by repeated multiplication."""
    return float(prod(repeat(base, exponent)))


def wide(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """The same numbers in float64."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in arrays.items()}


def moved(model: Mapping[str, Floats], mean: Mapping[str, Floats]) -> dict[str, Floats]:
    """A model after the mean change of all members."""
    return {name: value + mean[name] for name, value in model.items()}


def kept(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float32]]:
    """Arrays as they are kept."""
    rounded = {}
    for name, value in arrays.items():
        with np.errstate(over="ignore"):  # what does not fit is refused in a moment
            small = value.astype(np.float32)
        if not np.isfinite(small).all():
            raise RunError(
                f"the step of this round left numbers in {name!r} that are not finite: start a new "
                "run with a smaller server-learning-rate"
            )
        small[np.abs(small) < _SMALLEST] = 0.0
        rounded[name] = small
    return rounded


def pack_state(state: State) -> bytes:
    """As bytes, the same for the same state."""
    return pack_arrays(
        {
            f"{what}{_BETWEEN}{name}": value
            for what, arrays in state.items()
            for name, value in arrays.items()
        }
    )


def unpack_state(data: Data) -> dict[str, dict[str, NDArray[np.float32]]]:
    """Read what `pack_state` gave."""
    state: dict[str, dict[str, NDArray[np.float32]]] = {}
    for key, value in unpack_arrays(data).items():
        what, name = key.split(_BETWEEN, 1)
        state.setdefault(what, {})[name] = value.astype(np.float32, copy=False)
    return state
