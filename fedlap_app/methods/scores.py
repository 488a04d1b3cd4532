"""Scores of one client as flat numbers that can be added, and their total over clients.

The areas under curves come from histograms: for each class, how many nodes of it and of the others
the model gives which probability. Their sum over clients is all that they need.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from fedlap_app.models.options import METRICS

if TYPE_CHECKING:  # the server adds scores without importing torch
    from fedlap_app.methods.base import Method
    from fedlap_app.models.evaluation import Evaluation
    from fedlap_app.settings import Settings

SPLITS = ("train", "val", "test")
_FIELDS = ("count", "correct", "loss-sum", "macro-f1")
# What an answer may tell: a mean loss is for choosing between rounds of equal accuracy, where its
# standard error over 1,000 nodes is some 0.02. A loss beyond the largest one, that of a model worse
# than any guess, would carry as many digits as whoever made the model wants.
LOSS_DECIMALS = 3
LARGEST_LOSS = 10.0
F1_DECIMALS = 2
LOSS_SHARE = 0.5
"""Of the validation loss, which is taken off the accuracy that judges rounds of a portfolio."""
_DIGITS = 9
Scores = Mapping[str, Any]
Counts = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """How long the numbers of each split are, which follows from the settings of a run.

    Parameters
    ----------
    classes, bins : int
        Shape of the histograms, which training nodes have none of; 0: there are none.
    """

    classes: int = 0
    bins: int = 0

    @classmethod
    def of(cls, settings: "Settings", classes: int) -> "Layout":
        """The layout of a run."""
        return cls(classes, settings.score_bins)

    def width(self, split: str) -> int:
        """How many numbers a split has."""
        return len(_FIELDS) + (0 if split == "train" else 2 * self.classes * self.bins)

    @property
    def size(self) -> int:
        """How many numbers all splits have together."""
        return sum(self.width(split) for split in SPLITS)

    def cut(self, packed: Sequence[float]) -> dict[str, Sequence[float]]:
        """The numbers of each split."""
        parts, start = {}, 0
        for split in SPLITS:
            parts[split] = packed[start : start + self.width(split)]
            start += self.width(split)
        return parts


PLAIN = Layout()


def pack(evaluation: "Evaluation") -> list[float]:
    """Counts and sums by which the scores of several clients can be added.

    Mean losses and macro F1 are rounded, in every way of running alike. Recall per class stays
    with the organisation: with the counts it would tell its labels. Histograms tell them as well,
    so that an organisation's policy must allow them, where they are not sealed.
    """
    packed: list[float] = []
    for split in SPLITS:
        scores = getattr(evaluation, split)
        count = scores.count
        loss = _rounded(scores.loss) * count if count else 0.0
        f1 = round(scores.macro_f1, F1_DECIMALS) if count else 0.0
        packed += [float(count), float(scores.correct), loss, f1]
        if scores.histogram is not None:
            packed += scores.histogram.ravel().astype(np.float64).tolist()
    return packed


def _rounded(loss: float) -> float:
    """A mean loss as it leaves; one that is not a number counts as the largest."""
    return round(loss, LOSS_DECIMALS) if loss < LARGEST_LOSS else LARGEST_LOSS


def withhold(packed: Sequence[float], least: int, layout: Layout = PLAIN) -> list[float]:
    """The same scores, without any number of splits that have fewer than `least` nodes."""
    kept: list[float] = []
    for start in range(0, len(packed), layout.size):
        for numbers in layout.cut(packed[start : start + layout.size]).values():
            kept += numbers if numbers[0] >= least else [0.0] * len(numbers)
    return kept


def pack_all(evaluations: "Sequence[Evaluation]") -> list[float]:
    """Several scores of one client, one after the other."""
    return [value for evaluation in evaluations for value in pack(evaluation)]


def unpack_all(packed: Sequence[float], layout: Layout = PLAIN) -> list[dict[str, Any]]:
    """What `pack_all` packed, by name."""
    size = layout.size
    return [unpack(packed[at : at + size], layout) for at in range(0, len(packed), size)]


def unpack(packed: Sequence[float], layout: Layout = PLAIN) -> dict[str, Any]:
    """The same numbers by name."""
    found: dict[str, Any] = {}
    for split, numbers in layout.cut(packed).items():
        names = [f"{split}-{field}" for field in _FIELDS]
        found |= zip(names, numbers[: len(_FIELDS)], strict=True)
        if len(numbers) > len(_FIELDS):
            counts = np.asarray(numbers[len(_FIELDS) :])
            found[f"{split}-histogram"] = counts.reshape(2, layout.classes, layout.bins)
    return found


def addable(packed: Sequence[float], layout: Layout = PLAIN) -> list[float]:
    """The same scores as numbers whose plain sum over clients says all that their total does."""
    at = _FIELDS.index("macro-f1")
    found: list[float] = []
    for start in range(0, len(packed), layout.size):
        for numbers in layout.cut(packed[start : start + layout.size]).values():
            found += [*numbers[:at], numbers[at] * numbers[0], *numbers[at + 1 :]]
    return found


def summed(sums: Sequence[float], layout: Layout = PLAIN) -> list[dict[str, Any]]:
    """Totals from the sum of what all clients made `addable`; as many as each had scores."""
    found = unpack_all(sums, layout)
    for scores in found:
        for split in SPLITS:
            scores[f"{split}-macro-f1"] /= scores[f"{split}-count"] or 1.0
    return [total([scores]) for scores in found]


def total(clients: Sequence[Scores]) -> dict[str, float]:
    """Scores over the nodes of all clients; macro F1 is the clients' weighted mean."""
    result: dict[str, float] = {}
    for split in SPLITS:
        count = sum(scores[f"{split}-count"] for scores in clients)
        correct = sum(scores[f"{split}-correct"] for scores in clients)
        loss = sum(scores[f"{split}-loss-sum"] for scores in clients)
        f1 = sum(scores[f"{split}-macro-f1"] * scores[f"{split}-count"] for scores in clients)
        result[f"{split}_accuracy"] = correct / count if count else math.nan
        result[f"{split}_loss"] = loss / count if count else math.nan
        result[f"{split}_macro_f1"] = f1 / count if count else math.nan
        if clients and all(f"{split}-histogram" in scores for scores in clients):
            histogram = np.sum([scores[f"{split}-histogram"] for scores in clients], axis=0)
            result[f"{split}_roc_auc"] = roc_auc(histogram)
            result[f"{split}_average_precision"] = average_precision(histogram)
    return result


def roc_auc(histogram: Counts) -> float:
    """Mean over the classes of the area under the ROC curve; a pair in one bin counts half."""
    others, own = _with_both(histogram)
    below = np.cumsum(others, axis=1) - others
    pairs = (own * (below + others / 2)).sum(axis=1)
    return _mean(pairs / (own.sum(axis=1) * others.sum(axis=1)))


def average_precision(histogram: Counts) -> float:
    """Mean over the classes of the precision at each bin's threshold, weighted by its recall."""
    others, own = (counts[:, ::-1] for counts in _with_both(histogram))
    found = np.cumsum(own, axis=1)
    precision = found / np.maximum(found + np.cumsum(others, axis=1), 1.0)
    return _mean((own * precision).sum(axis=1) / own.sum(axis=1))


def _with_both(histogram: Counts) -> tuple[Counts, Counts]:
    """Histograms of the classes that some nodes are of and some are not."""
    others, own = histogram
    known = (others.sum(axis=1) > 0) & (own.sum(axis=1) > 0)
    return others[known], own[known]


def _mean(values: Counts) -> float:
    return float(values.mean()) if len(values) else math.nan


def train_loss(replies: Sequence[Sequence[float]]) -> float:
    """Mean loss over the training nodes of all clients, from the first of what each packed."""
    firsts = [dict(zip(_FIELDS, packed, strict=False)) for packed in replies]
    count = sum(first["count"] for first in firsts)
    return sum(first["loss-sum"] for first in firsts) / count if count else math.nan


def accuracy(scores: Scores, split: str) -> float:
    """Accuracy of one client; nan without nodes."""
    count = scores[f"{split}-count"]
    return scores[f"{split}-correct"] / count if count else math.nan


def by_metric(totals: Scores, split: str, metric: str) -> float:
    """The score of a split by a metric; nan where it has none."""
    return float(totals.get(f"{split}_{metric.replace('-', '_')}", math.nan))


@dataclass
class Best:
    """The best round so far, and whether there was none for too long.

    Parameters
    ----------
    patience : int
        Rounds without a better one after which training ends; 0: never.
    metric : str
        What a round is judged by.
    last : bool
        Take every round for better than those before.
    loss_share : float
        How much of the validation loss is taken off the score.
    """

    patience: int = 0
    metric: str = METRICS[0]
    last: bool = False
    loss_share: float = 0.0
    round: int = 0
    totals: Scores | None = None

    @classmethod
    def of(cls, method: "Method") -> Self:
        """What judges the rounds of a method.

        The weights of a portfolio follow the validation loss, so that it is no loss of a model
        that is too sure. Of few nodes it tells more than their accuracy, which begins to vary long
        before it stops to grow.
        """
        settings = method.settings
        by_loss = method.has_portfolio and settings.metric == METRICS[0]
        share = LOSS_SHARE if by_loss else 0.0
        return cls(settings.patience, settings.metric, settings.kept_round == "last", share)

    def takes(self, number: int, totals: Scores) -> bool:
        """Take in the totals of a round; whether it is the best one now."""
        better = self.last or is_better(totals, self.totals, self.metric, self.loss_share)
        if better:
            self.round, self.totals = number, totals
        return better

    def is_ahead_of(self, other: "Best") -> bool:
        """Whether this training's best round beats that of another one."""
        if self.totals is None:
            return False
        return is_better(self.totals, other.totals, self.metric, self.loss_share)

    def is_enough(self, number: int) -> bool:
        """Whether training ends with this round."""
        return 0 < self.patience <= number - self.round


def best_of(choices: Sequence[Scores], metric: str) -> int:
    """Which of several totals validates best; the first where nothing speaks for another."""
    chosen = 0
    for number, totals in enumerate(choices):
        known = not math.isnan(by_metric(totals, "val", metric))
        if known and is_better(totals, choices[chosen], metric):
            chosen = number
    return chosen


def is_better(
    candidate: Scores,
    best: Scores | None,
    metric: str = METRICS[0],
    loss_share: float = 0.0,
) -> bool:
    """Whether a round's totals beat the best so far: the validation score, then validation loss.

    Without validation nodes the last round is the best one.
    """

    def judged(totals: Scores) -> float:
        own = by_metric(totals, "val", metric)
        # Rounded, as the order in which clients are added must not decide.
        return round(own - loss_share * totals["val_loss"], _DIGITS) if loss_share else own

    own = judged(candidate)
    if best is None or math.isnan(own):
        return True
    ahead = own - judged(best)
    return ahead > 0 or (ahead == 0 and candidate["val_loss"] < best["val_loss"])
