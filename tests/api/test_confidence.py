"""A temperature fits probabilities to how often they are right."""

import numpy as np

from fedlap_app.api.confidence import LEAST_NODES, softened, temperature


def test_the_temperature_that_logits_were_divided_by_is_found():
    random = np.random.default_rng(0)
    logits = random.normal(scale=2.0, size=(20_000, 3))
    truth = softened(logits, 1.0)
    labels = (random.random((len(logits), 1)) > np.exp(truth).cumsum(axis=1)).sum(axis=1)
    sure = softened(logits, 1 / 3)  # three times too sure of itself
    assert 2.8 < temperature(sure, labels) < 3.2
    np.testing.assert_allclose(np.exp(softened(sure, 3.0)), np.exp(truth), atol=1e-12)


def test_few_nodes_leave_probabilities_as_they_are():
    few = LEAST_NODES - 1
    assert temperature(np.zeros((few, 2)), np.zeros(few, dtype=np.int64)) == 1.0
