"""What a trained model says about the nodes of one organisation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.fedlap_plus import attach, method_model
from fedlap_app.methods.fedlap_rows import with_share
from fedlap_app.models.evaluation import Evaluation, log_probabilities_of, score
from fedlap_app.models.model_file import ModelFile
from fedlap_app.models.parameters import load_parameters
from fedlap_app.models.specs import ROWS
from fedlap_app.models.tensors import GraphTensors
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
    subgraph: Subgraph, model: ModelFile, basis: FinishedBasis | None = None
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
    """
    from fedlap_app.models.determinism import one_thread
    from fedlap_app.models.device import pick_device

    settings = parse_settings(model.config)
    spec = settings.model_spec(subgraph.num_features, subgraph.num_classes)
    with one_thread():
        tensors = GraphTensors.from_subgraph(subgraph, spec, pick_device(settings.device))
        if basis is not None:
            tensors = attach(tensors, basis, settings)
        tensors = with_share(tensors, subgraph, settings)
        network = network_of(settings, model, subgraph).to(tensors.device)
        found = log_probabilities_of(network, tensors)
    return Prediction(found, score(found, tensors))


def network_of(settings: Settings, model: ModelFile, subgraph: Subgraph) -> "nn.Module":
    """The network of a model with its parameters, on the CPU; rows are those of the model."""
    parameters = model.parameters
    held = len(parameters[ROWS]) if ROWS in parameters else 0
    network = method_model(settings, subgraph.num_features, subgraph.num_classes, held=held)
    empty = {name: value.numpy() for name, value in network.state_dict().items() if name == ROWS}
    load_parameters(network, {**empty, **parameters})
    return network
