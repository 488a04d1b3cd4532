"""One FedAvg round against arithmetic done by hand."""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.flower.records import from_arrays
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.base import Schema
from fedlap_app.methods.registry import method_class


def test_the_global_model_is_the_mean_weighted_by_training_nodes(settings, make_grid, observer):
    settings = replace(settings, clients=2, rounds=1)
    grid = make_grid(settings)
    run(grid, settings, observer)
    sizes = [int(s.train_mask.sum()) for s in load_federation(settings.data_spec)]
    replies = [r.content for m, r in grid.seen if m.metadata.message_type == "train"]
    sent = next(m.content for m, _ in grid.seen if m.metadata.message_type == "evaluate")
    result = from_arrays(sent.array_records["arrays"])
    parts = [from_arrays(reply.array_records["arrays"]) for reply in replies]
    for name, value in result.items():
        expected = (sizes[0] * parts[0][name] + sizes[1] * parts[1][name]) / sum(sizes)
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=1e-8)


def test_the_first_model_is_the_same_for_the_same_seed(settings):
    def first(seed):
        method = method_class(settings.method).of(settings)
        return method.start(Schema(12, 3), seed, {}).model

    assert all(np.array_equal(value, first(0)[name]) for name, value in first(0).items())
    assert any(not np.array_equal(value, first(7)[name]) for name, value in first(0).items())


def test_a_client_without_training_nodes_has_no_weight(settings, make_grid, observer):
    settings = replace(settings, clients=40, rounds=1, partition="random", train_ratio=0.05)
    grid = make_grid(settings)
    summary = run(grid, settings, observer)
    weights = [
        reply.content.metric_records["metrics"]["num-examples"]
        for message, reply in grid.seen
        if message.metadata.message_type == "train"
    ]
    assert min(weights) == 0
    assert 0 <= summary["accuracy"]["test"] <= 1
    assert summary["loss"]["test"] == pytest.approx(summary["loss"]["test"])
