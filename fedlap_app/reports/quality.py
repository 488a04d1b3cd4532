"""How right predictions are, class by class, and how right their probabilities are."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedlap_app.reports.charts import Axis, Chart, heat, lines

_BINS = 10
Ints = NDArray[np.int64]


def confusion(labels: Ints, predicted: Ints, classes: Sequence[str]) -> Chart:
    """Nodes by true class (row) and predicted class (column)."""
    counts = np.zeros((len(classes), len(classes)), dtype=np.int64)
    np.add.at(counts, (labels, predicted), 1)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = [
        {"true": true, "predicted": guessed, "nodes": int(counts[i, j]),
         "share": float(counts[i, j] / totals[i, 0])}
        for i, true in enumerate(classes) for j, guessed in enumerate(classes)
    ]  # fmt: skip
    wrong = int(counts.sum() - np.trace(counts))
    says = f"{wrong} of {int(counts.sum())} nodes are off the diagonal."
    if wrong:
        off = counts - np.diag(np.diag(counts))
        i, j = np.unravel_index(int(off.argmax()), off.shape)
        says += f" Most often {classes[int(i)]} is taken for {classes[int(j)]} ({int(off.max())})."
    x, y = Axis("predicted", "predicted", kind="nominal"), Axis("true", "true", kind="nominal")
    return heat("Confusion matrix of the test nodes", says, rows, x, y, "nodes", "share")


def calibration(confidence: NDArray[np.float64], hits: NDArray[np.bool_]) -> Chart:
    """Share that is right among predictions of about the same probability."""
    rows = [
        {"confidence": sure, "right": right, "what": "predictions", "nodes": count}
        for sure, right, count in _bins(confidence, hits)
    ]
    ideal = [{"confidence": at, "right": at, "what": "perfectly calibrated"} for at in (0.0, 1.0)]
    error = expected_error(confidence, hits)
    says = f"On average confidence is {100 * error:.1f} points from the share that is right."
    return lines("Calibration", says, [*rows, *ideal],
                 Axis("confidence", "probability of the predicted class", ".0%", (0, 1)),
                 Axis("right", "share that is right", ".0%", (0, 1)), "what")  # fmt: skip


def expected_error(confidence: NDArray[np.float64], hits: NDArray[np.bool_]) -> float:
    """Expected calibration error: mean distance of confidence and accuracy, by nodes."""
    found = _bins(confidence, hits)
    total = sum(count for _, _, count in found)
    return sum(abs(sure - right) * count for sure, right, count in found) / max(total, 1)


def _bins(
    confidence: NDArray[np.float64], hits: NDArray[np.bool_]
) -> list[tuple[float, float, int]]:
    """Mean confidence, share right and number of nodes of each bin that has some."""
    places = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    return [
        (float(confidence[places == at].mean()), float(hits[places == at].mean()),
         int((places == at).sum()))
        for at in range(_BINS) if (places == at).any()
    ]  # fmt: skip
