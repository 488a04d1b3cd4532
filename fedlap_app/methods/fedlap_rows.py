"""FedLap: a feature model on local edges plus a structure model on learned rows S_v.

An organisation holds the rows of its internal nodes and external neighbours only. The server
averages (theta_f, theta_s) as always and, under names that say nothing, the copies of each row.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.models.rows import RowModel, build_row_model
from fedlap_app.models.smoothness import LaplacianShare
from fedlap_app.models.specs import ROWS
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.settings import FEDLAP, Settings

Parameters = Mapping[str, NDArray[Any]]


def row_model(settings: Settings, num_features: int, num_classes: int, held: int) -> RowModel:
    """The model of the settings for `held` rows, the same for the same seed."""
    features = settings.model_spec(num_features, num_classes)
    used = None if settings.model == "none" else features
    # Rows are learned freely: an activation before the norm would only hide some of them.
    structure = replace(settings.structure_spec(num_classes), activation="none")
    return build_row_model(used, structure, settings.seed, held, weighted=settings.weighted)


def with_share(tensors: GraphTensors, subgraph: Subgraph, settings: Settings) -> GraphTensors:
    """Tensors with the organisation's share of the regulariser; for other methods as they are."""
    if settings.method != FEDLAP:
        return tensors
    share = LaplacianShare.from_subgraph(
        subgraph,
        settings.row_operator,
        self_loops=settings.krylov.loops,
        device=tensors.device,
    )
    return replace(tensors, share=share)


def without_rows(parameters: Parameters) -> Parameters:
    """What is averaged as one model; the rows go their own way."""
    return {name: value for name, value in parameters.items() if name != ROWS}
