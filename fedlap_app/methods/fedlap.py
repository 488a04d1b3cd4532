"""FedLap: a feature model on local edges plus a structure model on learned rows S_v.

An organisation holds the rows of its internal nodes and external neighbours only. The server
averages (theta_f, theta_s) as always and, under names that say nothing, the copies of each row.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import MODEL, Found, Parameters, Records, Schema, State
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.methods.shared_rows import Places, average, places_of, start_table
from fedlap_app.models.options import RowOptions, StructureOptions
from fedlap_app.models.specs import ROWS
from fedlap_app.sums.job.row_keys import Order, read_order

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings

RECORD = ROWS  # of a message; its only array is named after the job that named the rows


class FedLap(FedAvg):
    """Federated averaging of f(X, E, v) + g(S_v), and of the copies of each row of S."""

    name: ClassVar[str] = "fedlap"
    summary: ClassVar[str] = "learned structure features"
    reads: ClassVar[frozenset[str]] = (
        FedAvg.reads - {"optimizer-at"} | keys_of(StructureOptions, RowOptions) | {"self-loops"}
    )
    programs: ClassVar[tuple[str, ...]] = ("row-names",)
    own_models: ClassVar[bool] = True
    steps_at_server: ClassVar[bool] = False
    structural: ClassVar[bool] = True
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees models, counts of scores and, under names that say nothing, the learned "
        "row of every node and which organisations hold a copy of it.",
        "Organisations see the mean model, and the mean of the copies of rows that they share.",
        "Features, labels and the names of nodes stay where they are.",
    )
    weakness: ClassVar[str] = (
        "The server sees, under names that say nothing, the structure features of all nodes and "
        "which organisations hold a copy of each: hide-topology has no effect on method fedlap."
    )

    @classmethod
    def check(cls, settings: "Settings") -> None:
        """Refuse a basis: the learned rows stand in its place."""
        if settings.spectral:
            raise ConfigError(
                "spectral = true asks for a basis that method fedlap replaces by learned rows: "
                "leave it out, or try method = 'fedlap+'"
            )

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """Both models, and `held` rows."""
        from fedlap_app.models.portfolio import build_row_portfolio
        from fedlap_app.models.rows import build_row_model

        settings = self.settings
        if self.has_portfolio:
            structure = replace(settings.structure_spec(schema.classes), activation="none")
            specs = self.branch_specs(schema)
            return build_row_portfolio(specs, structure, seed, held, settings.row_smoothing)
        features = None if settings.model == "none" else self.spec(schema)
        # Rows are learned freely: an activation before the norm would only hide some of them.
        structure = replace(settings.structure_spec(schema.classes), activation="none")
        return build_row_model(features, structure, seed, held, weighted=settings.weighted)

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """Features, internal edges and the organisation's share of the regulariser."""
        from fedlap_app.models.smoothness import LaplacianShare

        tensors = super().inputs(part, found)
        share = LaplacianShare.from_subgraph(
            part,
            self.settings.row_operator,
            self_loops=self.settings.krylov.loops,
            device=tensors.device,
        )
        return replace(tensors, share=share)

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy, of each branch too if asked for, and the regulariser of the rows."""
        from fedlap_app.models.portfolio import RowPortfolio
        from fedlap_app.models.rows import smooth_rows

        if isinstance(model, RowPortfolio):
            return model.objective(inputs)
        return smooth_rows(self.settings.row_smoothing, self.settings.branch_loss)(model, inputs)

    def received(self, org: "Organisation", records: Records) -> Parameters:
        """The model, and the rows in the order of the own nodes."""
        job, rows = _rows(records)
        order = _order(org, job)
        if rows.ndim != 2 or len(rows) != len(order):
            raise ProtocolError(
                f"the message carries rows of shape {rows.shape} where {len(order)} are held here: "
                "start the run again"
            )
        own = np.empty_like(rows)
        own[order] = rows
        return {**records[MODEL], ROWS: own}

    def returned(self, org: "Organisation", received: Records, parameters: Parameters) -> Records:
        """The model, and the rows in the order they came in."""
        job, _ = _rows(received)
        model = {name: value for name, value in parameters.items() if name != ROWS}
        return {MODEL: model, RECORD: {job: parameters[ROWS][_order(org, job)]}}

    def kept(self, org: "Organisation", parameters: Parameters) -> Parameters:
        """The model, and the rows of the own nodes."""
        return {**parameters, ROWS: parameters[ROWS][: org.subgraph.num_nodes]}

    def start(self, schema: Schema, seed: int, found: Mapping[str, Found]) -> State:
        """A fresh model and fresh rows under the names that the organisations gave."""
        named = found["row-names"]
        places = places_of(named.job, named.told)
        model = super().start(schema, seed, found).model
        fitting = {name: value for name, value in model.items() if name != ROWS}
        table = start_table(len(places.holders), self.settings.structure_width, seed)
        return State(fitting, (places, table))

    def send(self, state: State, member: str) -> Records:
        """The model and the member's rows, in its own order."""
        places, table = state.rest
        return {MODEL: state.model, RECORD: {places.job: table[places.of[member]]}}

    def join(self, state: State, mean: Parameters, updates: Mapping[str, Records]) -> State:
        """The mean model, and the mean of the copies of each row."""
        places, table = state.rest
        copies = {member: _copy(places, member, records) for member, records in updates.items()}
        return State(mean, (places, average(places, table, copies)))


def _rows(records: Records) -> tuple[str, NDArray[Any]]:
    found = list(records.get(RECORD, {}).items())
    if len(found) != 1:
        raise ProtocolError(
            f"the message carries {len(found)} arrays of rows where one was expected: it was not "
            "made by this app's server"
        )
    return found[0]


def _copy(places: Places, member: str, records: Records) -> NDArray[Any]:
    """The rows that a member returned."""
    found = records.get(RECORD, {})
    if list(found) != [places.job]:
        raise ProtocolError(
            f"{member} returned no rows of job {places.job}: let all organisations run one version"
        )
    return found[places.job]


def _order(org: "Organisation", job: str) -> Order:
    subgraph = org.subgraph
    return read_order(org.store.root, job, subgraph.num_nodes + subgraph.num_external)
