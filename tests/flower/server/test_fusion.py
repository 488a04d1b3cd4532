"""The weight of the feature model that validation chooses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlap_app.flower.records import from_arrays, numbers
from fedlap_app.flower.server.run import run
from fedlap_app.methods.scores import total, unpack_all
from fedlap_app.models.specs import FEATURE_WEIGHT, FEATURE_WEIGHTS


@pytest.fixture
def weighted(settings):
    return replace(
        settings, method="fedlap+", fusion="validation", backend="mask", rounds=4,
        vectors=12, rank=6, block=4, structure_width=8,
    )  # fmt: skip


def asked(grid, kind):
    return [(message.content, reply.content) for message, reply in grid.seen
            if message.metadata.message_type == kind]  # fmt: skip


def weight_of(content):
    return float(from_arrays(content.array_records["arrays"])[FEATURE_WEIGHT][0])


@pytest.mark.parametrize("method", ["fedlap+", "fedlap"])
def test_the_best_weight_of_the_best_round_is_kept(weighted, make_grid, observer, method):
    settings = replace(weighted, method=method)
    grid = make_grid(settings)
    summary = run(grid, settings, observer)
    every = asked(grid, "train")[settings.clients :] + asked(grid, "evaluate")
    found = []
    for start in range(0, len(every), settings.clients):
        replies = [reply for _, reply in every[start : start + settings.clients]]
        clients = [unpack_all(numbers(reply, "scores")) for reply in replies]
        found += [total(scores)["val_accuracy"] for scores in zip(*clients, strict=True)]
    assert len(found) == settings.rounds * len(FEATURE_WEIGHTS)
    kept = asked(grid, "evaluate.keep")
    assert max(found) == pytest.approx(summary["accuracy"]["val"])
    assert weight_of(kept[0][0]) in FEATURE_WEIGHTS
    assert len(unpack_all(numbers(kept[0][1], "scores"))) == 1
    assert all(weight_of(sent) == 1.0 for sent, _ in asked(grid, "train"))
    rows = (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
    assert {json.loads(row)["feature_weight"] for row in rows} <= set(FEATURE_WEIGHTS)


def test_without_validation_the_model_has_no_weight(weighted, make_grid, observer):
    settings = replace(weighted, fusion="sum")
    grid = make_grid(settings)
    run(grid, settings, observer)
    sent, reply = asked(grid, "train")[0]
    assert FEATURE_WEIGHT not in sent.array_records["arrays"]
    assert len(numbers(reply, "scores")) == 12


def test_the_sum_of_log_probabilities_is_weighted(weighted, make_grid, observer):
    """The totals of weight 1 are those of the plain sum: a shift of logits changes no class."""
    plain, fused = replace(weighted, fusion="sum"), weighted
    correct = []
    for settings in (plain, fused):
        grid = make_grid(settings)
        run(grid, settings, observer)
        first = [unpack_all(numbers(reply, "scores"))[0] for _, reply in asked(grid, "train")]
        correct.append([scores["test-correct"] for scores in first])
    np.testing.assert_array_equal(correct[0], correct[1])


def test_without_validation_nodes_the_models_count_alike(weighted, make_grid, observer):
    settings = replace(weighted, val_ratio=0.0)
    grid = make_grid(settings)
    summary = run(grid, settings, observer)
    rows = (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
    assert {json.loads(row)["feature_weight"] for row in rows} == {1.0}
    assert weight_of(asked(grid, "evaluate.keep")[0][0]) == 1.0
