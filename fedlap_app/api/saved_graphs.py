"""Graphs that were saved as arrays: a file of numpy's, or an object of torch_geometric's."""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from fedlap_app.errors import DataError

SUFFIXES = (".npz", ".pt")
_NEEDED = ("x", "y", "edge_index")


def read_saved(path: Path) -> Any:  # noqa: ANN401 - torch_geometric's Data
    """The graph of a file, as torch_geometric's Data."""
    import torch
    from torch_geometric.data import Data

    try:
        arrays = _saved_object(path) if path.suffix == ".pt" else _arrays(path)
    except (OSError, ValueError, zipfile.BadZipFile, RuntimeError, EOFError) as error:
        why = str(error).partition(".")[0]
        raise DataError(f"{path} cannot be read ({why}): save it again") from None
    missing = [name for name in _NEEDED if arrays.get(name) is None]
    if missing:
        raise DataError(
            f"{path} lacks {', '.join(missing)}: it needs x (nodes, features), y (nodes) and "
            "edge_index (2, edges)"
        )
    numeric = {
        name: torch.from_numpy(value)
        for name, value in arrays.items()
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
    }
    return Data(**{**arrays, **numeric})


def _arrays(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def _saved_object(path: Path) -> dict[str, Any]:
    """Attributes of an object that `torch.save` wrote; no code of the file is run."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
    from torch_geometric.data.storage import GlobalStorage

    known = [Data, DataEdgeAttr, DataTensorAttr, GlobalStorage]
    try:
        with torch.serialization.safe_globals(known):
            found = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise ValueError("it holds more than a torch_geometric Data") from None
    if isinstance(found, tuple):  # what torch_geometric's data sets of one graph keep
        found = found[0]
    attributes = found.to_dict() if isinstance(found, Data) else found
    if not isinstance(attributes, dict):
        raise ValueError(f"it holds a {type(found).__name__}, not a torch_geometric Data")
    return attributes
