"""The file ``features.npz``: one row a node, in the order of the nodes' table."""

import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Features, feature_matrix

FILE = "features.npz"
_SPARSE_FORMATS = ("csr", "csc", "coo")


def read_features(path: Path, num_nodes: int, feature_names: tuple[str, ...]) -> Features:
    """Read what `scipy.sparse.save_npz` wrote, or `numpy.savez` with an array ``x``."""
    try:
        with np.load(path, allow_pickle=False) as file:
            matrix = file["x"] if "x" in file.files else _sparse(path)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{path} cannot be read ({reason}): write it with scipy.sparse.save_npz, or with "
            "numpy.savez and a numeric array x."
        ) from None
    features = feature_matrix(matrix, f"The matrix in {path}")
    rows, columns = features.shape
    if rows != num_nodes:
        raise DataError(
            f"{path} has {rows} rows but there are {num_nodes} nodes: give one row a node."
        )
    if columns != len(feature_names):
        raise DataError(
            f"{path} has {columns} columns but org.toml announces {len(feature_names)} features: "
            "make them the same."
        )
    return features


def _sparse(path: Path) -> sp.csr_array:
    matrix = sp.load_npz(path)
    if matrix.format not in _SPARSE_FORMATS:
        raise ValueError(f"format {matrix.format}")
    if matrix.format != "coo":
        # Positions outside the matrix would otherwise be read from foreign memory.
        matrix.check_format(full_check=True)
    return sp.csr_array(matrix)


def write_features(path: Path, features: Features) -> None:
    """Write a matrix, sparse or dense as it is."""
    if isinstance(features, np.ndarray):
        np.savez_compressed(path, x=features)
    else:
        sp.save_npz(path, features)
