"""Parameters as named arrays, and arrays from elsewhere checked before they enter a model."""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from fedlap_app.errors import ProtocolError


def parameters_of(model: nn.Module) -> dict[str, NDArray[np.float32]]:
    """Copy a model's parameters to arrays, in the model's order."""
    return {name: value.cpu().numpy().copy() for name, value in model.state_dict().items()}


def load_parameters(model: nn.Module, parameters: Mapping[str, NDArray[np.floating]]) -> None:
    """Copy arrays into a model in place.

    Raises
    ------
    ProtocolError
        When a name is missing or unknown, a shape differs or a value is not finite; the model is
        unchanged then.
    """
    own = model.state_dict()
    missing, unknown = (
        sorted(own.keys() - parameters.keys()),
        sorted(parameters.keys() - own.keys()),
    )
    if missing or unknown:
        raise ProtocolError(
            f"The received parameters lack {missing} and have the unknown {unknown}; "
            "all parties must use the same model settings and version."
        )
    checked = {name: _checked(name, parameters[name], tuple(own[name].shape)) for name in own}
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(torch.from_numpy(checked[name]))


def _checked(name: str, value: NDArray[np.floating], shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Copy of an array as 32-bit floats, or an error that says what is wrong with it."""
    if np.shape(value) != shape:
        raise ProtocolError(
            f"The received parameter {name!r} has shape {np.shape(value)} and the model's has "
            f"{shape}; all parties must use the same model settings."
        )
    is_float = np.asarray(value).dtype.kind == "f"
    with np.errstate(over="ignore"):
        array = np.array(value if is_float else np.nan, dtype=np.float32)
    if not np.isfinite(array).all():
        raise ProtocolError(
            f"The received parameter {name!r} has values that are not finite numbers; "
            "discard this round and lower the learning rate if it happens again."
        )
    return array
