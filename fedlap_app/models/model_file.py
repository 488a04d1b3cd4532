"""A trained model as bytes: its parameters, the settings it was made with and its schema."""

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.store import names

FILE = names.MODEL
_ABOUT = "about"


@dataclass(frozen=True)
class ModelFile:
    """What is needed to predict with a model elsewhere.

    Attributes
    ----------
    parameters : Mapping
        Arrays by name.
    config : Mapping
        Settings of the run.
    schema : str
        Hash of class names and feature columns.
    basis : str
        Offline job whose basis the model reads; empty for models without one.
    data : str
        Fingerprint of the subgraph whose rows are among the parameters; empty without such rows.
    """

    parameters: Mapping[str, NDArray[Any]]
    config: Mapping[str, Any]
    schema: str
    basis: str = ""
    data: str = ""

    def to_bytes(self) -> bytes:
        """The model in numpy's zip format, without pickles."""
        facts = {"schema": self.schema, "basis": self.basis, "data": self.data}
        about = json.dumps({"config": dict(self.config), **facts}).encode()
        arrays = {f"parameter/{name}": value for name, value in self.parameters.items()}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **{_ABOUT: np.frombuffer(about, np.uint8)}, **arrays)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, origin: str) -> "ModelFile":
        """Read what `to_bytes` wrote; `origin` names the file in errors."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                about = json.loads(file[_ABOUT].tobytes())
                parameters = {
                    name.removeprefix("parameter/"): file[name]
                    for name in file.files
                    if name != _ABOUT
                }
            facts = (about[name] for name in ("config", "schema", "basis", "data"))
            return cls(parameters, *facts)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise DataError(f"{origin} is not a model of this app ({error})") from None
