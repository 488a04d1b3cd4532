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
    for name, value in own.items():
        array = np.asarray(parameters[name])
        if array.shape != tuple(value.shape):
            raise ProtocolError(
                f"The received parameter {name!r} has shape {array.shape} and the model's has "
                f"{tuple(value.shape)}; all parties must use the same model settings."
            )
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ProtocolError(
                f"The received parameter {name!r} has values that are not finite numbers; "
                "discard this round and lower the learning rate if it happens again."
            )
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(torch.from_numpy(np.array(parameters[name], dtype=np.float32)))
