"""Parameters and numbers as Flower records, and back."""

from collections.abc import Mapping
from typing import Any

from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError

Metrics = Mapping[str, int | float | list[float]]
_last: tuple[ArrayRecord, dict[str, NDArray[Any]]] | None = None


def to_arrays(parameters: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    """Named numpy arrays as a record."""
    return ArrayRecord({name: Array(value) for name, value in parameters.items()})


def from_arrays(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    """Named numpy arrays of a record, read-only.

    Clients in one process are handed the same record, so the last one is kept.
    """
    global _last
    if _last is None or _last[0] is not record:
        arrays = {name: array.numpy() for name, array in record.items()}
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
