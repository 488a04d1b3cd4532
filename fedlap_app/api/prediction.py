"""What a trained model says about the nodes of one organisation."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.encoding import Encoding
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import Schema
from fedlap_app.methods.features import own_encoding
from fedlap_app.methods.kept import BASIS
from fedlap_app.methods.registry import method_class
from fedlap_app.models.calibration import temperature_of, tempered
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
    """Log-probabilities of the classes for every node (n, classes), calibrated, and their scores.

    The temperature is that of the part's own validation nodes.
    """

    log_probabilities: NDArray[np.float32]
    evaluation: Evaluation
    temperature: float = 1.0

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
    encoding: Encoding | None = None,
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
    encoding
        How features are read (default: as the model says, or by the part's own table).
    """
    from fedlap_app.models.determinism import one_thread

    settings = parse_settings(model.config)
    method = method_class(settings.method).of(settings)
    if encoding is None:
        known = model.encoding
        encoding = Encoding.from_bytes(known) if known else own_encoding(subgraph, settings)
    if encoding is not None:
        subgraph = encoding.apply(subgraph)
    with one_thread():
        inputs = method.inputs(subgraph, {BASIS: basis} if basis is not None else {})
        network = network_of(settings, model, subgraph).to(inputs.device)
        found = log_probabilities_of(network, inputs)
    nodes = inputs.splits["val"]
    temperature = temperature_of(found[nodes], subgraph.labels[nodes])
    calibrated = tempered(found, temperature).astype(np.float32)
    return Prediction(calibrated, score(found, inputs), temperature)


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
