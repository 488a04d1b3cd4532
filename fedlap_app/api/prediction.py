"""What a trained model says about the nodes of one organisation."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import WHOLE, Schema
from fedlap_app.methods.kept import BASIS
from fedlap_app.methods.registry import method_class
from fedlap_app.models.evaluation import Evaluation, log_probabilities_of, score
from fedlap_app.models.model_file import ModelFile
from fedlap_app.models.parameters import load_parameters
from fedlap_app.models.specs import ROWS
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.sums.job.bases import FinishedBasis

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, eq=False)
class Prediction:
    """Log-probabilities of the classes for every node (n, classes), and their scores."""

    log_probabilities: NDArray[np.float32]
    evaluation: Evaluation

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
    others: Mapping[str, Any] = MappingProxyType({}),
) -> Prediction:
    """Predict for every node of a part.

    Parameters
    ----------
    subgraph
        The part.
    model
        A model of its schema.
    basis
        The organisation's rows of the basis, if the model reads one.
    others
        What other programs left at the organisation; all parts of a simulation.
    """
    from fedlap_app.models.determinism import one_thread

    settings = parse_settings(model.config)
    method = method_class(settings.method).of(settings)
    with one_thread():
        found = {BASIS: basis} if basis is not None else {}
        if method.simulated and WHOLE not in others:
            raise DataError(
                f"the method {method.name} of this model reads the data of all organisations: "
                "predict with Run.predict, in the simulation that trained it"
            )
        inputs = method.inputs(subgraph, {**found, **others})
        network = network_of(settings, model, subgraph).to(inputs.device)
        predicted = log_probabilities_of(network, inputs)[: subgraph.num_nodes]
    return Prediction(predicted, score(predicted, inputs))


def network_of(settings: Settings, model: ModelFile, subgraph: Subgraph) -> "nn.Module":
    """The network of a model with its parameters, on the CPU; rows are those of the model."""
    parameters = model.parameters
    held = len(parameters[ROWS]) if ROWS in parameters else 0
    shape = Schema(subgraph.num_features, subgraph.num_classes)
    method = method_class(settings.method).of(settings)
    network = method.model(shape, settings.seed, held=held)
    empty = {name: value.numpy() for name, value in network.state_dict().items() if name == ROWS}
    load_parameters(network, {**empty, **parameters})
    return network
