"""What the server reads of a training round: the model and the scores, no part of the objective."""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.flower.records import number, numbers
from fedlap_app.flower.server.run import run
from fedlap_app.models.guesses import Guesses


@pytest.fixture
def settings(settings):
    # One epoch without dropout: what is minimised is a smooth function of the model received.
    return replace(
        settings, method="fedlap+", backend="mask", rounds=1, dropout=0.0, input_dropout=0.0,
        vectors=12, rank=6, block=4, structure_width=8,
    )  # fmt: skip


def first_metrics(grid, stage=0):
    """Metrics of the replies to the first round of a stage."""
    replies = [reply.content for message, reply in grid.seen
               if message.metadata.message_type == "train"]  # fmt: skip
    chosen = replies[3 * stage : 3 * stage + 3]
    assert all(
        set(reply.metric_records["metrics"]) == {"num-examples", "scores"} for reply in chosen
    )
    return [(number(reply, "num-examples"), numbers(reply, "scores")) for reply in chosen]


@pytest.mark.parametrize(
    ("method", "knob"), [("fedlap+", "smoothing"), ("fedlap", "row_smoothing")]
)
def test_no_number_follows_from_the_regulariser(settings, make_grid, observer, method, knob):
    """A loss with lambda times the Rayleigh quotient in it is an equation for the eigenvalues."""
    seen = []
    for strength in (0.0, 50.0):
        chosen = replace(settings, method=method, **{knob: strength})
        grid = make_grid(chosen)
        run(grid, chosen, observer)
        seen.append(first_metrics(grid))
    assert seen[0] == seen[1]


def test_no_number_follows_from_the_guesses(settings, make_grid, observer, monkeypatch):
    seen = []
    for turned in (0, 1):

        def guess(predicted, training, spec, turned=turned):
            classes = np.roll(np.eye(predicted.shape[1], dtype=np.float32), turned, axis=1)
            weights = np.full(len(predicted), 1.0, dtype=np.float32)
            return Guesses(classes[predicted.argmax(axis=1)], weights)

        monkeypatch.setattr("fedlap_app.models.guesses.guess", guess)
        chosen = replace(settings, self_training=1)
        grid = make_grid(chosen)
        run(grid, chosen, observer)
        seen.append(first_metrics(grid, stage=1))
    assert seen[0] == seen[1]
