"""Parameters and numbers as Flower records, and back."""

import hashlib
import io
import math
from collections import deque
from collections.abc import Mapping
from functools import cached_property, lru_cache
from tokenize import TokenError
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from flwr.common.constant import SType
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError

Metrics = Mapping[str, int | float | list[float]]
_FLOATS = ("float32", "float64")
# What numpy raises at a header, which it reads as Python.
_UNREADABLE = (
    ValueError, KeyError, TypeError, OverflowError, SyntaxError, RecursionError, MemoryError,
    TokenError, AttributeError,
)  # fmt: skip
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class ReadInPlace(Array):
    """An array that came in a message; its numbers are read where they lie, without a copy.

    So no room is ever made for what a message only says that it holds.
    """

    def __init__(self, array: Array) -> None:
        super().__init__(array.dtype, array.shape, array.stype, array.data)

    def numpy(self) -> NDArray[Any]:
        """Return the array, read-only; one that this app did not write is read Flower's way."""
        start = _header(self.shape, self.dtype) if self.dtype in _FLOATS else b""
        size = len(self.data) - len(start)
        if not start or not self.data.startswith(start) or size != _content_bytes(self):
            return _in_numpys_form(self)
        flat = np.frombuffer(self.data, self.dtype, offset=len(start))
        return flat.reshape(self.shape)


class ArrayError(ProtocolError, ValueError):
    """An array that came in a message cannot be read."""


def _in_numpys_form(array: Array) -> NDArray[Any]:
    """The array that some bytes in numpy's own format hold, read-only."""
    stream = io.BytesIO(array.data)
    try:
        version = np.lib.format.read_magic(stream)
        shape, fortran, dtype = _HEADERS[version](stream)
        size = math.prod(shape) * dtype.itemsize
        if array.stype != SType.NUMPY or dtype.hasobject or size != len(array.data) - stream.tell():
            raise ValueError
        flat = (
            np.frombuffer(array.data, dtype, offset=stream.tell()) if size else np.empty(0, dtype)
        )
        return flat.reshape(shape, order="F" if fortran else "C")
    except _UNREADABLE as error:
        raise ArrayError(
            f"an array of {len(array.data)} bytes in the message does not hold the numbers that it "
            "names: it was altered or not made by this app"
        ) from error


def to_arrays(parameters: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    """Named numpy arrays as a record."""
    record = ArrayRecord()
    for name, value in parameters.items():
        record[name] = _array(value)
    return record


def read_in_place(record: ArrayRecord) -> None:
    """Let the arrays of a received record be read without a copy; such a record is not sent on."""
    for name, array in record.items():
        record[name] = ReadInPlace(array)


def _array(value: NDArray[Any]) -> Array:
    """The same as ``Array(value)``, with one copy of the content in place of three."""
    flat = np.asarray(value, order="C")
    content = flat.data.cast("B") if flat.size else b""
    data = b"".join((_header(flat.shape, str(flat.dtype)), content))
    return Array(str(flat.dtype), tuple(flat.shape), SType.NUMPY, data)


@lru_cache(maxsize=256)
def _header(shape: tuple[int, ...], dtype: str) -> bytes:
    """What ``numpy.save`` writes before the content of an array."""
    buffer = io.BytesIO()
    facts = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, facts)
    return buffer.getvalue()


def _content_bytes(array: Array) -> int:
    return math.prod(array.shape) * np.dtype(array.dtype).itemsize


def from_arrays(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    """Named numpy arrays of a record, read-only."""
    return _read(record).arrays


def records_in(content: RecordDict, needed: str) -> dict[str, dict[str, NDArray[Any]]]:
    """Named arrays of every record of arrays in a message, read-only; one of them is needed."""
    if not isinstance(content.get(needed), ArrayRecord):
        raise ProtocolError("the message carries no model: it was not made by this app's server")
    return {
        name: _read(record).arrays
        for name, record in content.items()
        if isinstance(record, ArrayRecord)
    }


def packed(records: Mapping[str, Mapping[str, NDArray[Any]]]) -> dict[str, ArrayRecord]:
    """Named arrays as records of a message."""
    return {name: to_arrays(parameters) for name, parameters in records.items()}


def digest_of(content: RecordDict) -> str:
    """Hash of all that a message of the training phase says."""
    whole = hashlib.sha256()
    for name, record in sorted(content.items()):
        if isinstance(record, ArrayRecord):
            said = _read(record).digest
        else:
            said = repr(sorted(record.items())).encode()
        whole.update(b"%s %d " % (repr(name).encode(), len(said)) + said)
    return whole.hexdigest()


class _Read:
    """A record that was read."""

    def __init__(self, record: ArrayRecord) -> None:
        self.record = record
        self.arrays = {name: ReadInPlace(array).numpy() for name, array in record.items()}
        for array in self.arrays.values():
            array.flags.writeable = False

    @cached_property
    def digest(self) -> bytes:
        """Hash of names, types, shapes and numbers."""
        whole = hashlib.sha256()
        for name, array in self.arrays.items():
            whole.update(repr((name, array.dtype.str, array.shape)).encode())
            whole.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return whole.digest()


def _read(record: ArrayRecord) -> _Read:
    """The record, read once: clients in one process are handed the same ones, two at a time."""
    for known in _latest:
        if known.record is record:
            return known
    _latest.append(_Read(record))
    return _latest[-1]


_latest: "deque[_Read]" = deque(maxlen=2)


def to_metrics(numbers: Metrics) -> MetricRecord:
    """Numbers or lists of numbers as a record."""
    return MetricRecord(dict(numbers))


def number(content: RecordDict, key: str) -> float:
    """A number of a reply's metrics."""
    value = _metrics(content).get(key)
    if not isinstance(value, int | float):
        raise ProtocolError(f"a reply carries no number {key}: the client runs another app")
    return value


def numbers(content: RecordDict, key: str) -> list[float]:
    """A list of numbers of a reply's metrics."""
    values = _metrics(content).get(key)
    if not isinstance(values, list):
        raise ProtocolError(f"a reply carries no list {key}: the client runs another app")
    return [float(value) for value in values]


def _metrics(content: RecordDict) -> MetricRecord:
    # Not `content.metric_records`: Flower builds that anew each time it is asked for.
    record = content.get("metrics")
    return record if isinstance(record, MetricRecord) else MetricRecord()
