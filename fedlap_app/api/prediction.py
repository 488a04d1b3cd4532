"""What a trained model says about the nodes that one organisation has now."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs.encoding import Encoding
from fedlap_app.graphs.snapshot import Changes, Snapshot
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import WHOLE, Schema
from fedlap_app.methods.features import own_encoding
from fedlap_app.methods.kept import BASIS
from fedlap_app.methods.registry import method_class
from fedlap_app.models.calibration import temperature_of, tempered
from fedlap_app.models.evaluation import Evaluation, log_probabilities_of, score
from fedlap_app.models.model_file import ModelFile
from fedlap_app.models.parameters import load_parameters
from fedlap_app.models.specs import ROWS
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.spectral.averaging import Averaging
from fedlap_app.spectral.extension import COMPUTED, EXTENDED, Rows
from fedlap_app.sums.job.bases import FinishedBasis

if TYPE_CHECKING:
    from torch import nn

    from fedlap_app.models.tensors import GraphTensors

_MEASURED = 2000  # validation nodes that a confidence is measured on are enough


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a model says about every node of a part.

    Attributes
    ----------
    log_probabilities : (n, classes) of the classes, calibrated on validation nodes whose row of
        the basis has the same origin.
    evaluation : scores on the nodes whose label is known.
    origins : (n,) whether a node's row of the basis was computed, extended or is none.
    changes : of the graph since training; None: nobody kept what it was.
    """

    log_probabilities: NDArray[np.float32]
    evaluation: Evaluation
    origins: NDArray[np.str_]
    changes: Changes | None = None

    @property
    def classes(self) -> NDArray[np.int64]:
        """Number of the likeliest class of every node."""
        found: NDArray[np.int64] = self.log_probabilities.argmax(axis=1)
        return found

    @property
    def probabilities(self) -> NDArray[np.float32]:
        """Its probability."""
        found: NDArray[np.float32] = np.exp(self.log_probabilities.max(axis=1))
        return found


def predict_part(
    subgraph: Subgraph,
    model: ModelFile,
    basis: FinishedBasis | None = None,
    graph: Snapshot | None = None,
    encoding: Encoding | None = None,
    others: Mapping[str, Any] = MappingProxyType({}),
) -> Prediction:
    """Predict for every node of a part, those that came after training as well.

    Parameters
    ----------
    subgraph
        The part.
    model
        A model of its schema.
    basis
        The organisation's rows of the basis, if the model reads one.
    graph
        What the part was at training (default: what the basis says, or as it is now).
    encoding
        How features are read (default: as the model says, or by the part's own table).
    others
        What other programs left at the organisation; all parts of a simulation.
    """
    from fedlap_app.models.determinism import one_thread

    encoding = encoding or encoding_of(subgraph, model)
    part = subgraph
    if encoding is not None:
        part = encoding.apply(subgraph)
        if WHOLE in others:
            others = {**others, WHOLE: [encoding.apply(each) for each in others[WHOLE]]}
    reader = _Reader(part, model, basis, others)
    before = basis.graph if basis is not None else graph
    with one_thread():
        rows = reader.fit(before)
        inputs = reader.inputs(rows)
        found = reader.read(rows, inputs)
        calibrated = _calibrated(reader, rows, found)
    changes = None if before is None else before.changes(subgraph)
    return Prediction(calibrated, score(found, inputs), rows.origins, changes)


def encoding_of(part: Subgraph, model: ModelFile) -> Encoding | None:
    """How a model reads features; None: as they are."""
    if model.encoding:
        return Encoding.from_bytes(model.encoding)
    return own_encoding(part, parse_settings(model.config))


class _Reader:
    """A model over a part, with whatever rows it is given."""

    def __init__(
        self,
        part: Subgraph,
        model: ModelFile,
        basis: FinishedBasis | None,
        others: Mapping[str, Any],
    ) -> None:
        self.part, self.model, self.basis, self.others = part, model, basis, others
        self.settings = parse_settings(model.config)
        self.method = method_class(self.settings.method).of(self.settings)
        if self.method.simulated and WHOLE not in others:
            raise DataError(
                f"the method {self.method.name} of this model reads the data of all organisations: "
                "predict with Run.predict, in the simulation that trained it"
            )
        self.averaging = Averaging()
        if basis is not None:
            self.averaging = self.settings.krylov.averaging(basis.facts)

    def fit(self, graph: Snapshot | None) -> Rows:
        """Rows for the nodes that are there now; no columns for a model that reads none."""
        size = self.part.num_nodes
        if self.basis is None and not self._has_rows:
            nobody = np.zeros(size, dtype=bool)
            return Rows(np.zeros((size, 0)), nobody, nobody)
        held = self._learned() if self.basis is None else self.basis.rows
        if graph is None or (len(held.U) == size and np.array_equal(graph.ids, self.part.ids)):
            return held
        if self.basis is None:  # of learned rows only the direction counts
            held.U[:] /= np.maximum(np.linalg.norm(held.U, axis=1, keepdims=True), 1e-12)
        return self.averaging.fit(self.part, graph, held)

    def _learned(self) -> Rows:
        """The rows that the model holds."""
        learned = self.model.parameters[ROWS].astype(np.float64)
        everybody = np.ones(len(learned), dtype=bool)
        return Rows(learned, everybody, everybody)

    @property
    def _has_rows(self) -> bool:
        """Whether the model holds a row for each own node; some hold those of all nodes."""
        return ROWS in self.model.parameters and not self.method.counts_nodes

    def inputs(self, rows: Rows) -> "GraphTensors":
        """What the network reads."""
        found = {} if self.basis is None else {BASIS: replace(self.basis, U=rows.U)}
        return self.method.inputs(self.part, {**self.others, **found})

    def read(self, rows: Rows, inputs: "GraphTensors") -> NDArray[np.float32]:
        """Log-probabilities of all nodes."""
        model = self.model
        if self._has_rows:
            learned = {ROWS: rows.U.astype(model.parameters[ROWS].dtype)}
            model = replace(model, parameters={**model.parameters, **learned})
        network = network_of(self.settings, model, self.part).to(inputs.device)
        return log_probabilities_of(network, inputs)[: self.part.num_nodes]


def _calibrated(reader: _Reader, rows: Rows, found: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log-probabilities that are right on validation nodes with a row of the same origin."""
    part, origins = reader.part, rows.origins
    calibrated = np.array(found)
    for origin in np.unique(origins).tolist():
        nodes, said = np.flatnonzero(part.val_mask), found
        if rows.U.shape[1]:
            nodes = nodes[rows.computed[nodes]]
            nodes = nodes[:: -(-len(nodes) // _MEASURED) or 1]
        if rows.U.shape[1] and origin != COMPUTED and len(nodes):
            others = np.array(rows.U)
            others[nodes] = 0.0
            has_row = np.ones(len(nodes), dtype=bool)
            if origin == EXTENDED:
                others, has_row = reader.averaging.as_if_new(part, rows.U, nodes)
            nodes, tried = nodes[has_row], replace(rows, U=others)
            said = reader.read(tried, reader.inputs(tried))
        at = origins == origin
        calibrated[at] = tempered(found[at], temperature_of(said[nodes], part.labels[nodes]))
    return calibrated


def network_of(settings: Settings, model: ModelFile, subgraph: Subgraph) -> "nn.Module":
    """The network of a model with its parameters, on the CPU; rows are those of the model."""
    parameters = model.parameters
    held = len(parameters[ROWS]) if ROWS in parameters else 0
    shape = Schema(subgraph.num_inputs, subgraph.num_classes)
    method = method_class(settings.method).of(settings)
    network = method.model(shape, settings.seed, held=held)
    empty = {name: value.numpy() for name, value in network.state_dict().items() if name == ROWS}
    load_parameters(network, {**empty, **parameters})
    return network
