"""A server that keeps every contribution and subtracts any two: pads used once show nothing."""

import itertools

import numpy as np
import pytest

from fedlap_app.sums.job.live import forget as forget_live

from .scene import is_uniform


@pytest.mark.parametrize("restarted", [False, True])
def test_the_difference_of_any_two_is_uniform(scene, restarted):
    """Over steps, recipients, attempts of a job, restarted processes, resumed jobs and runs."""
    for hello in ("h1", "h2"):
        coordinator = scene.coordinator(hello)
        while not coordinator.done:
            scene.run("", coordinator=coordinator, rounds=1)
            if restarted:
                forget_live()
    scene.run("h3", rounds=4)  # never finished
    for name in scene.names:
        sent = scene.contributions(name)
        assert len(sent) >= 18
        kept = [words for each in sent.values() for words in each]
        for words in kept:
            assert is_uniform(words)
        pairs = list(itertools.combinations(kept, 2))
        assert len(pairs) > 150
        for one, other in pairs:
            size = min(one.size, other.size)
            if size > 500:
                assert is_uniform(one[:size] - other[:size])
        everything = np.concatenate(kept)
        assert np.unique(everything).size == everything.size
