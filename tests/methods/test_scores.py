"""What of a client's scores may leave."""

import math

import numpy as np
import pytest

from fedlap_app.methods.scores import LARGEST_LOSS, is_better, pack, total, unpack, withhold
from fedlap_app.models.evaluation import Evaluation, SplitScores


def scored(loss_sum, nodes=7):
    """A split in which two of the nodes are of a class that is never predicted."""
    return SplitScores(np.array([[nodes - 2, 0], [2, 0]]), loss_sum)


def of(*splits):
    return pack(Evaluation(*splits))


def test_losses_and_f1_are_rounded_counts_are_not():
    scores = unpack(of(scored(7 * 0.12345), scored(7 * 0.12349), scored(0.0)))
    assert (scores["train-count"], scores["train-correct"]) == (7, 5)
    assert scores["train-loss-sum"] / 7 == pytest.approx(0.123)
    assert scores["train-loss-sum"] == scores["val-loss-sum"]
    assert scores["train-macro-f1"] == 0.42  # 10 / 12 of one class and nothing of the other


@pytest.mark.parametrize("loss", [1e6, math.inf, math.nan])
def test_a_loss_beyond_the_largest_tells_only_that(loss):
    scores = unpack(of(scored(loss), scored(loss), scored(loss)))
    assert scores["test-loss-sum"] == 7 * LARGEST_LOSS
    assert total([scores])["test_loss"] == LARGEST_LOSS


def test_a_withheld_split_counts_for_nothing():
    few, many = scored(3.0, nodes=9), scored(5.0, nodes=10)
    kept = unpack(withhold(of(many, few, many), 10))
    assert kept["train-count"] == 10
    assert [kept[f"val-{name}"] for name in ("count", "correct", "loss-sum", "macro-f1")] == [0] * 4
    other = unpack(of(many, many, many))
    assert total([kept, other])["val_loss"] == total([other])["val_loss"]
    assert total([kept, other])["train_accuracy"] == total([other])["train_accuracy"]


def test_without_any_validation_score_the_last_round_is_the_best():
    few = unpack(withhold(of(*[scored(1.0)] * 3), 10))
    totals = total([few, few])
    assert math.isnan(totals["val_accuracy"])
    assert is_better(totals, totals)
