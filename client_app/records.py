"""Parameters and numbers as Flower records."""

from collections.abc import Mapping
from typing import Any

from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def to_arrays(parameters: Arrays) -> ArrayRecord:
    """Named numpy arrays as a record."""
    return ArrayRecord({name: Array(value) for name, value in parameters.items()})


def from_arrays(record: ArrayRecord) -> dict[str, NDArray[Any]]:
    """Named numpy arrays of a record."""
    return {name: array.numpy() for name, array in record.items()}


def to_metrics(numbers: Mapping[str, Any]) -> MetricRecord:
    """Numbers or lists of numbers as a record."""
    return MetricRecord(dict(numbers))


def numbers(content: RecordDict, key: str) -> dict[str, float]:
    """Single numbers of a metric record."""
    record = content.metric_records[key]
    return {name: value for name, value in record.items() if isinstance(value, int | float)}
