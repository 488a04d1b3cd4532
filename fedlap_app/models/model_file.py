"""A trained model as bytes: its parameters, the settings it was made with and its schema."""

import io
import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.store import names

FILE = names.MODEL
_ABOUT, _ENCODING = "about", "encoding"
_FACTS = ("schema", "basis", "data", "features")
_DAMAGE = (
    OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile, NotImplementedError,
    RuntimeError, OverflowError, struct.error, zlib.error,
)  # fmt: skip
"""What zipfile and numpy raise for files that are cut or altered."""


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
        Fingerprint of the part that an organisation trained on; empty in the server's file.
    features : str
        Offline job whose moments the features are standardised by; empty without one.
    encoding : bytes
        How the features are read, where that may be known; empty: the store of the organisation
        says it, or they are read as they are.
    """

    parameters: Mapping[str, NDArray[Any]]
    config: Mapping[str, Any]
    schema: str
    basis: str = ""
    data: str = ""
    features: str = ""
    encoding: bytes = b""

    def to_bytes(self) -> bytes:
        """The model in numpy's zip format, without pickles."""
        facts = {name: getattr(self, name) for name in _FACTS}
        about = json.dumps({"config": dict(self.config), **facts}).encode()
        arrays = {f"parameter/{name}": value for name, value in self.parameters.items()}
        if self.encoding:
            arrays[_ENCODING] = np.frombuffer(self.encoding, np.uint8)
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
                    if name not in (_ABOUT, _ENCODING)
                }
                encoding = file[_ENCODING].tobytes() if _ENCODING in file.files else b""
            # A model of an earlier release says nothing of features.
            facts = {"features": "", **{name: about[name] for name in about if name in _FACTS}}
            return cls(parameters, about["config"], encoding=encoding, **facts)
        except _DAMAGE as error:
            raise DataError(
                f"{origin} is not a whole model of this app ({error}): copy it again, or train anew"
            ) from None
