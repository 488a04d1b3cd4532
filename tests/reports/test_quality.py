import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from fedlap_app.reports.quality import calibration, confusion, expected_error


def test_the_confusion_matrix_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, predicted = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    chart = confusion(labels, predicted, ["a", "b", "c", "d"])
    counts = np.array([row[2] for row in chart.rows]).reshape(4, 4)
    assert (counts == confusion_matrix(labels, predicted)).all()


def test_a_model_that_knows_what_it_knows_has_no_calibration_error():
    confidence = np.array([0.75] * 8)
    hits = np.array([True] * 6 + [False] * 2)
    assert expected_error(confidence, hits) == 0
    assert expected_error(confidence, ~hits) == pytest.approx(0.5)
    assert "50.0 points" in calibration(confidence, ~hits).says


def test_bins_weigh_by_their_nodes():
    confidence = np.array([0.95] * 9 + [0.55])
    hits = np.array([True] * 9 + [False])
    assert expected_error(confidence, hits) == pytest.approx(0.9 * 0.05 + 0.1 * 0.55)
