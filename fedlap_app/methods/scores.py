"""Scores of one client as flat numbers, and their total over clients."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the server adds scores without importing torch
    from fedlap_app.models.evaluation import Evaluation

SPLITS = ("train", "val", "test")
_FIELDS = ("count", "correct", "loss-sum", "macro-f1")
# What an answer may tell: a mean loss is for choosing between rounds of equal accuracy, where its
# standard error over 1,000 nodes is some 0.02. A loss beyond the largest one, that of a model worse
# than any guess, would carry as many digits as whoever made the model wants.
LOSS_DECIMALS = 3
LARGEST_LOSS = 10.0
F1_DECIMALS = 2
Scores = Mapping[str, float]


def pack(evaluation: "Evaluation") -> list[float]:
    """Counts and sums by which the scores of several clients can be added.

    Mean losses and macro F1 are rounded, in every way of running alike. Recall per class stays
    with the organisation: with the counts it would tell its labels.
    """
    packed: list[float] = []
    for split in SPLITS:
        scores = getattr(evaluation, split)
        count = scores.count
        loss = _rounded(scores.loss) * count if count else 0.0
        f1 = round(scores.macro_f1, F1_DECIMALS) if count else 0.0
        packed += [float(count), float(scores.correct), loss, f1]
    return packed


def _rounded(loss: float) -> float:
    """A mean loss as it leaves; one that is not a number counts as the largest."""
    return round(loss, LOSS_DECIMALS) if loss < LARGEST_LOSS else LARGEST_LOSS


def withhold(packed: Sequence[float], least: int) -> list[float]:
    """The same scores, without any number of splits that have fewer than `least` nodes."""
    kept: list[float] = []
    for start in range(0, len(packed), len(_FIELDS)):
        split = packed[start : start + len(_FIELDS)]
        kept += split if split[0] >= least else [0.0] * len(_FIELDS)
    return kept


def pack_all(evaluations: "Sequence[Evaluation]") -> list[float]:
    """Several scores of one client, one after the other."""
    return [value for evaluation in evaluations for value in pack(evaluation)]


def unpack_all(packed: Sequence[float]) -> list[dict[str, float]]:
    """What `pack_all` packed, by name."""
    size = len(SPLITS) * len(_FIELDS)
    return [unpack(packed[start : start + size]) for start in range(0, len(packed), size)]


def unpack(packed: Sequence[float]) -> dict[str, float]:
    """The same numbers by name."""
    names = [f"{split}-{field}" for split in SPLITS for field in _FIELDS]
    return dict(zip(names, packed, strict=True))


def total(clients: Sequence[Scores]) -> dict[str, float]:
    """Accuracy and loss over the nodes of all clients; macro F1 is the clients' weighted mean."""
    result: dict[str, float] = {}
    for split in SPLITS:
        count = sum(scores[f"{split}-count"] for scores in clients)
        correct = sum(scores[f"{split}-correct"] for scores in clients)
        loss = sum(scores[f"{split}-loss-sum"] for scores in clients)
        f1 = sum(scores[f"{split}-macro-f1"] * scores[f"{split}-count"] for scores in clients)
        result[f"{split}_accuracy"] = correct / count if count else math.nan
        result[f"{split}_loss"] = loss / count if count else math.nan
        result[f"{split}_macro_f1"] = f1 / count if count else math.nan
    return result


def accuracy(scores: Scores, split: str) -> float:
    """Accuracy of one client; nan without nodes."""
    count = scores[f"{split}-count"]
    return scores[f"{split}-correct"] / count if count else math.nan


@dataclass
class Best:
    """The best round so far, and whether there was none for too long.

    Parameters
    ----------
    patience : int
        Rounds without a better one after which training ends; 0: never.
    """

    patience: int = 0
    round: int = 0
    totals: Scores | None = None

    def takes(self, number: int, totals: Scores) -> bool:
        """Take in the totals of a round; whether it is the best one now."""
        better = is_better(totals, self.totals)
        if better:
            self.round, self.totals = number, totals
        return better

    def is_ahead_of(self, other: "Best") -> bool:
        """Whether this training's best round beats that of another one."""
        return self.totals is not None and is_better(self.totals, other.totals)

    def is_enough(self, number: int) -> bool:
        """Whether training ends with this round."""
        return 0 < self.patience <= number - self.round


def is_better(candidate: Scores, best: Scores | None) -> bool:
    """Whether a round's totals beat the best so far: validation accuracy, then validation loss.

    Without validation nodes the last round is the best one.
    """
    if best is None or math.isnan(candidate["val_accuracy"]):
        return True
    ahead = candidate["val_accuracy"] - best["val_accuracy"]
    return ahead > 0 or (ahead == 0 and candidate["val_loss"] < best["val_loss"])
