"""Parameters and numbers as Flower records, and back."""

import io
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from flwr.common.constant import SType
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError

Metrics = Mapping[str, int | float | list[float]]
_FLOATS = ("float32", "float64")
_last: tuple[ArrayRecord, dict[str, NDArray[Any]]] | None = None


class ReadInPlace(Array):
    """An array that came in a message; its numbers are read where they lie, without a copy."""

    def __init__(self, array: Array) -> None:
        self.__dict__.update(array.__dict__)

    def numpy(self) -> NDArray[Any]:
        """Return the array, read-only; one that this app did not write is read Flower's way."""
        start = _header(self.shape, self.dtype) if self.dtype in _FLOATS else b""
        size = len(self.data) - len(start)
        if not start or not self.data.startswith(start) or size != _content_bytes(self):
            return super().numpy()
        flat = np.frombuffer(self.data, self.dtype, offset=len(start))
        return flat.reshape(self.shape)


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
    """Named numpy arrays of a record, read-only.

    Clients in one process are handed the same record, so the last one is kept.
    """
    global _last
    if _last is None or _last[0] is not record:
        arrays = {name: ReadInPlace(array).numpy() for name, array in record.items()}
        for array in arrays.values():
            array.flags.writeable = False
        _last = record, arrays
    return _last[1]


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
