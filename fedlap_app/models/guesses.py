"""Self-training: a model's own predictions as labels of the nodes that have none for training."""

import io
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError

Labels = Literal["hard", "soft"]


@dataclass(frozen=True)
class GuessSpec:
    """Which predictions become labels.

    Parameters
    ----------
    labels : "hard" | "soft"
        The likeliest class, or all probabilities squared and scaled to sum 1.
    confidence : float
        Least probability of the likeliest class.
    weight : float
        Weight of a guessed node in the loss; a training node has 1.
    """

    labels: Labels
    confidence: float
    weight: float


@dataclass(frozen=True, eq=False)
class Guesses:
    """Guessed class probabilities (n, classes) and the weight of each node (n,), 0 for none."""

    targets: NDArray[np.float32]
    weights: NDArray[np.float32]

    def to_bytes(self) -> bytes:
        """The guesses as an npz file."""
        buffer = io.BytesIO()
        np.savez(buffer, targets=self.targets, weights=self.weights)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Read what `to_bytes` wrote."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                return cls(file["targets"], file["weights"])
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise DataError(f"the kept label guesses cannot be read: {error}") from None


def guess(
    log_probabilities: NDArray[np.floating], training: NDArray[np.int64], spec: GuessSpec
) -> Guesses:
    """Guess the labels of all nodes but the training nodes, where the model is confident."""
    probabilities = np.exp(log_probabilities.astype(np.float64))
    sure = probabilities.max(axis=1) >= spec.confidence
    sure[training] = False
    if spec.labels == "hard":
        targets = np.zeros_like(probabilities)
        targets[np.arange(len(targets)), probabilities.argmax(axis=1)] = 1.0
    else:
        squares = np.square(probabilities)
        targets = squares / squares.sum(axis=1, keepdims=True)
    return Guesses(targets.astype(np.float32), np.float32(spec.weight) * sure.astype(np.float32))
