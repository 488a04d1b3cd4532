"""Learned rows at a client: from a message to the model in the order of the own nodes, and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, RecordDict
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.flower.client.organisation import Organisation
from fedlap_app.flower.records import ReadInPlace, from_arrays, to_arrays
from fedlap_app.models.specs import ROWS
from fedlap_app.settings import FEDLAP
from fedlap_app.sums.job.row_keys import Order, read_order

Parameters = Mapping[str, NDArray[Any]]
RECORD = "rows"  # of a message; its only array is named after the job that named the rows


def received(organisation: Organisation, content: RecordDict) -> Parameters:
    """Parameters of a message; for a method with learned rows, with the rows."""
    parameters = from_arrays(_record(content, "arrays", "model"))
    if organisation.settings.method != FEDLAP:
        return parameters
    job, rows = _rows(content)
    order = _order(organisation, job)
    if rows.ndim != 2 or len(rows) != len(order):
        raise ProtocolError(
            f"the message carries rows of shape {rows.shape} where {len(order)} are held here: "
            "start the run again"
        )
    own = np.empty_like(rows)
    own[order] = rows
    return {**parameters, ROWS: own}


def returned(
    organisation: Organisation, content: RecordDict, parameters: Parameters
) -> dict[str, ArrayRecord]:
    """Records of a reply to `content`: the model, and the rows in the order they came in."""
    if organisation.settings.method != FEDLAP:
        return {"arrays": to_arrays(parameters)}
    job, _ = _rows(content)
    model = {name: value for name, value in parameters.items() if name != ROWS}
    rows = parameters[ROWS][_order(organisation, job)]
    return {"arrays": to_arrays(model), RECORD: to_arrays({job: rows})}


def kept(organisation: Organisation, parameters: Parameters) -> Parameters:
    """What the organisation keeps for its predictions: of the rows, those of its own nodes."""
    if ROWS not in parameters:
        return parameters
    return {**parameters, ROWS: parameters[ROWS][: organisation.subgraph.num_nodes]}


def _order(organisation: Organisation, job: str) -> Order:
    subgraph = organisation.subgraph
    return read_order(organisation.store.root, job, subgraph.num_nodes + subgraph.num_external)


def _rows(content: RecordDict) -> tuple[str, NDArray[Any]]:
    record = _record(content, RECORD, "rows")
    if len(record) != 1:
        raise ProtocolError(
            f"the message carries {len(record)} arrays of rows where one was expected: it was not "
            "made by this app's server"
        )
    (job, array), *_ = record.items()
    return job, ReadInPlace(array).numpy()


def _record(content: RecordDict, name: str, what: str) -> ArrayRecord:
    record = content.get(name)
    if not isinstance(record, ArrayRecord):
        raise ProtocolError(f"the message carries no {what}: it was not made by this app's server")
    return record
