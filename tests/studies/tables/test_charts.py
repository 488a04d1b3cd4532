"""Charts of tables: where their points lie."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedlap_app.studies.tables.charts import _over_bytes


def row(at, score, up, paper=None):
    return {
        "axis": "clients", "at": at, "system": "fedlap+", "curve": "", "score_mean": score,
        "score_std": 0.5, "up": up, "down": 2.0 * up, "paper": paper,
    }  # fmt: skip


def test_accuracy_stands_over_bytes_with_the_papers_beside_it():
    axes = Figure().subplots()
    _over_bytes(axes, [row(5, 81.0, 4e6, 79.0), row(10, 80.0, 2e6)])
    ours, paper = (line.get_xydata() for line in (axes.lines[0], axes.lines[-1]))
    assert ours == pytest.approx(np.array([[12.0, 81.0], [6.0, 80.0]]))
    assert paper == pytest.approx(np.array([[12.0, 79.0]]))
    assert axes.get_xscale() == "log"
    assert [text.get_text() for text in axes.texts] == ["5", "10"]
