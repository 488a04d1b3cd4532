"""Bring what a caller gives into one read-only array form, or say what is wrong with it."""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from fedlap_app.errors import DataError

Strings = NDArray[np.str_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
TEXT_LIMIT = 256  # characters of an id; numpy gives every entry the width of the longest
Features: TypeAlias = NDArray[np.float32] | sp.csr_array


def freeze(array: NDArray[Any]) -> NDArray[Any]:
    """Read-only array with the same content; a writeable one is copied first."""
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def strings(value: ArrayLike, what: str) -> Strings:
    """Read-only vector of text without control characters or empty entries."""
    array = np.asarray(value)
    if array.size == 0:
        return freeze(np.empty(0, dtype="<U1"))
    if array.ndim != 1:
        raise DataError(f"{what} has {array.ndim} dimensions: give a plain list of strings.")
    if array.dtype.kind not in "UT" and not all(isinstance(item, str) for item in array.tolist()):
        raise DataError(f"{what} holds entries that are not text: give every one as a string.")
    array = array.astype(np.str_, copy=False)
    if array.dtype.itemsize > 4 * TEXT_LIMIT:
        raise DataError(f"{what} has an entry of more than {TEXT_LIMIT} characters: shorten it.")
    _check_characters(array, what)
    return freeze(array)


def _check_characters(array: Strings, what: str) -> None:
    codes = np.ascontiguousarray(array).view(np.uint32).reshape(array.size, -1)
    empty = np.flatnonzero(codes[:, 0] == 0)
    if empty.size:
        raise DataError(f"{what} has an empty entry at position {empty[0]}: fill it in.")
    control = ((codes > 0) & (codes < 32)) | (codes == 127)
    # Zeros may only pad the end: a zero before a character is a NUL inside the text.
    control[:, :-1] |= (codes[:, :-1] == 0) & (codes[:, 1:] != 0)
    # Half a surrogate pair cannot be written as UTF-8.
    control |= (codes >= 0xD800) & (codes <= 0xDFFF)
    bad = np.flatnonzero(control.any(axis=1))
    if bad.size:
        entry = str(array[bad[0]])
        raise DataError(f"{what} has a control character in {entry!r}: remove it.")


def numbers(value: ArrayLike, dtype: DTypeLike, what: str) -> NDArray[Any]:
    """Read-only array of one numeric type, refusing conversions that change a value."""
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError
        converted = array.astype(dtype, copy=False)
        exact = np.dtype(dtype).kind == "f" or bool(np.array_equal(converted, array))
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} holds entries that are not numbers: give numbers.") from error
    if not exact:
        raise DataError(f"{what} holds numbers that do not fit {np.dtype(dtype)}: convert them.")
    return freeze(np.ascontiguousarray(converted))


def feature_matrix(value: Any, what: str) -> Features:  # noqa: ANN401
    """Read-only float32 matrix: dense stays dense, any sparse format becomes canonical CSR."""
    if not sp.issparse(value):
        with np.errstate(over="ignore"):
            dense = numbers(value, np.float32, what)
        if dense.ndim != 2:
            raise DataError(f"{what} has {dense.ndim} dimensions: give one row a node.")
        return dense
    matrix = sp.csr_array(value, dtype=np.float32, copy=True)
    matrix.sum_duplicates()
    return read_only_csr(matrix.data, matrix.indices, matrix.indptr, matrix.shape)


def read_only_csr(
    data: NDArray[np.float32],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    shape: tuple[int, int],
) -> sp.csr_array:
    """CSR matrix whose three arrays are read-only; columns are sorted and unique."""
    matrix = sp.csr_array((freeze(data), freeze(indices), freeze(indptr)), shape=shape, copy=False)
    matrix.has_canonical_format = True
    return matrix


def stored_values(features: Features) -> NDArray[np.float32]:
    """Every value that a feature matrix stores, as one flat array."""
    if isinstance(features, np.ndarray):
        return features.reshape(-1)
    values: NDArray[np.float32] = features.data
    return values


def take_rows(features: Features, rows: Ints) -> Features:
    """Rows of a feature matrix, in the given order."""
    picked: Features = features[rows]
    return picked


def stack_rows(parts: list[Features]) -> Features:
    """Feature matrices below each other; sparse when every part is."""
    if all(sp.issparse(part) for part in parts):
        stacked: Features = sp.vstack(parts, format="csr")
        return stacked
    return np.concatenate(
        [part if isinstance(part, np.ndarray) else part.toarray() for part in parts]
    )
