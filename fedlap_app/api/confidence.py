"""How far a prediction can be trusted, measured on nodes whose label is known."""

import numpy as np
from numpy.typing import NDArray

LEAST_NODES = 30
"""With fewer nodes to measure on, probabilities are left as the model gives them."""

_TEMPERATURES = np.geomspace(0.25, 8.0, 61)

Floats = NDArray[np.floating]


def temperature(log_probabilities: Floats, labels: NDArray[np.int64]) -> float:
    """What log-probabilities are divided by so that the labels' likelihood is largest.

    Parameters
    ----------
    log_probabilities
        (n, classes) of nodes that the model was not trained on.
    labels
        (n,) their classes.
    """
    if len(labels) < LEAST_NODES:
        return 1.0
    rows = np.arange(len(labels))
    losses = [-softened(log_probabilities, each)[rows, labels].mean() for each in _TEMPERATURES]
    return float(_TEMPERATURES[int(np.argmin(losses))])


def softened(log_probabilities: Floats, divisor: float) -> NDArray[np.float64]:
    """Log-probabilities after a division of all logits."""
    scaled = log_probabilities.astype(np.float64) / divisor
    scaled -= scaled.max(axis=1, keepdims=True)
    found: NDArray[np.float64] = scaled - np.log(np.exp(scaled).sum(axis=1, keepdims=True))
    return found
