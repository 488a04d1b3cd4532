"""Scores of a model on the splits, kept as counts so that organisations can be added up."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fedlap_app.models.tensors import GraphTensors


@dataclass(frozen=True, eq=False)
class SplitScores:
    """Counts of one split; scores of a split without nodes are nan.

    Attributes
    ----------
    confusion : NDArray
        (classes, classes) number of nodes by true class (row) and predicted class (column).
    loss_sum : float
        Sum of the nodes' cross-entropies.
    histogram : NDArray | None
        (2, classes, bins) number of nodes of other classes and of each class, by the probability
        that the model gives the class.
    """

    confusion: NDArray[np.int64]
    loss_sum: float
    histogram: NDArray[np.int64] | None = None

    @property
    def count(self) -> int:
        """Number of nodes."""
        return int(self.confusion.sum())

    @property
    def correct(self) -> int:
        """Number of nodes whose class was found."""
        return int(np.trace(self.confusion))

    @property
    def accuracy(self) -> float:
        """Share of nodes whose class was found."""
        return self.correct / self.count if self.count else math.nan

    @property
    def loss(self) -> float:
        """Mean cross-entropy."""
        return self.loss_sum / self.count if self.count else math.nan

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the classes that occur as truth or as prediction."""
        both = self.confusion.sum(axis=0) + self.confusion.sum(axis=1)
        present = np.count_nonzero(both)
        if not present:
            return math.nan
        return float((2.0 * self.confusion.diagonal() / np.maximum(both, 1)).sum() / present)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share found of each class, nan for a class without nodes."""
        truth = self.confusion.sum(axis=1)
        found = np.diag(self.confusion).astype(np.float64)
        shares = np.full(len(truth), math.nan)
        np.divide(found, truth, where=truth > 0, out=shares)
        return shares

    def __add__(self, other: Self) -> Self:
        both = self.histogram is not None and other.histogram is not None
        histogram = self.histogram + other.histogram if both else None  # type: ignore[operator]
        confusion, loss_sum = self.confusion + other.confusion, self.loss_sum + other.loss_sum
        return type(self)(confusion, loss_sum, histogram)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of the three splits; adding two gives the scores over both organisations."""

    train: SplitScores
    val: SplitScores
    test: SplitScores

    def __getitem__(self, split: str) -> SplitScores:
        return {"train": self.train, "val": self.val, "test": self.test}[split]

    def __add__(self, other: Self) -> Self:
        return type(self)(self.train + other.train, self.val + other.val, self.test + other.test)


def log_probabilities_of(model: nn.Module, tensors: GraphTensors) -> NDArray[np.float32]:
    """Log-probabilities of the classes for every node, (n, classes)."""
    model.eval()
    with torch.inference_mode():
        logits: Tensor = model(tensors)
        values: NDArray[np.float32] = logits.log_softmax(dim=1).cpu().numpy()
    return values


def evaluate(model: nn.Module, tensors: GraphTensors, *, bins: int = 0) -> Evaluation:
    """Score a model on train, val and test in one forward pass, with histograms if asked for."""
    return score(log_probabilities_of(model, tensors), tensors, bins=bins)


def score(
    log_probabilities: NDArray[np.floating], tensors: GraphTensors, *, bins: int = 0
) -> Evaluation:
    """Score given (n, classes) log-probabilities on train, val and test.

    Parameters
    ----------
    log_probabilities, tensors
        What is scored, and the labels.
    bins
        Resolution of the histograms on val and test; 0: none.
    """
    classes = log_probabilities.shape[1]
    predicted = log_probabilities.argmax(axis=1)

    def of_split(name: str, nodes: NDArray[np.int64]) -> SplitScores:
        truth = tensors.labels[nodes]
        pairs = np.bincount(truth * classes + predicted[nodes], minlength=classes * classes)
        losses = log_probabilities[nodes, truth].astype(np.float64)
        found = None
        if bins and name != "train":
            found = histogram_of(log_probabilities[nodes], truth, bins)
        return SplitScores(pairs.reshape(classes, classes), float(-losses.sum()), found)

    return Evaluation(**{name: of_split(name, nodes) for name, nodes in tensors.splits.items()})


def histogram_of(
    log_probabilities: NDArray[np.floating], truth: NDArray[np.int64], bins: int
) -> NDArray[np.int64]:
    """Nodes of other classes and of each class by its probability, (2, classes, bins)."""
    count, classes = log_probabilities.shape
    place = bin_of(log_probabilities, bins) + bins * np.arange(classes)
    place[np.arange(count), truth] += bins * classes
    return np.bincount(place.ravel(), minlength=2 * classes * bins).reshape(2, classes, bins)


def bin_of(log_probabilities: NDArray[np.floating], bins: int) -> NDArray[np.int64]:
    """Bins of equal width in sqrt(p) / (sqrt(p) + sqrt(1 - p)).

    By 64 bins log-odds l are told to .13 at 0 and to .3 at 4, and end at 8; a bin of equal width in
    p would hold all nodes of a rare class.
    """
    root = np.exp(0.5 * log_probabilities.astype(np.float64))
    other = np.sqrt(np.maximum(1.0 - np.square(root), 0.0))
    places: NDArray[np.int64] = (bins * root / (root + other)).astype(np.int64)
    return np.minimum(places, bins - 1)
