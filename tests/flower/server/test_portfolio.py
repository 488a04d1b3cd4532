"""A portfolio of branches over the protocol: what is summed, and the weights that follow."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fedlap_app.flower.client.handlers import _sums
from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.flower.records import from_arrays, numbers
from fedlap_app.flower.server.run import run
from fedlap_app.methods import weighing
from fedlap_app.models.specs import BRANCH_WEIGHTS
from fedlap_app.privacy.policy import SAFE


@pytest.fixture
def several(settings):
    return replace(
        settings, method="fedlap+", model="portfolio", backend="mask", rounds=3, hidden="8",
        training_backend="plain",
        vectors=12, rank=6, block=4, structure_width=8, self_training=1,
    )  # fmt: skip


def asked(grid, kind):
    return [(message.content, reply.content) for message, reply in grid.seen
            if message.metadata.message_type == kind]  # fmt: skip


def weights_of(content):
    return from_arrays(content.array_records["arrays"])[BRANCH_WEIGHTS]


@pytest.mark.parametrize(("method", "branches"), [("fedlap+", 6), ("fedavg", 3), ("fedlap", 4)])
def test_weights_follow_from_the_sums_of_all(several, make_grid, observer, method, branches):
    settings = replace(several, method=method)
    grid = make_grid(settings)
    summary = run(grid, settings, observer)
    rounds = asked(grid, "train")
    clients = settings.clients
    for start in range(0, 2 * clients, clients):
        sent, after = rounds[start][0], rounds[start + clients][0]
        sums = [numbers(reply, "sums") for _, reply in rounds[start : start + clients]]
        assert {len(each) for each in sums} == {weighing.size(branches)}
        expected = weighing.step(weights_of(sent).astype(np.float64), weighing.total(sums))
        # Replies come in another order than they were asked for, so that sums differ by a bit.
        np.testing.assert_allclose(weights_of(after), expected, atol=1e-5)
    np.testing.assert_allclose(weights_of(rounds[0][0]), 1 / branches)
    kept = asked(grid, "evaluate.keep")[0][0]
    rows = (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
    seen = [branch_weights(json.loads(row)) for row in rows]
    assert [round(float(weight), 4) for weight in weights_of(kept)] in seen
    assert all(weight >= 0 for row in seen for weight in row)


def branch_weights(row):
    """The weights that a line of a run's rounds has, in their order."""
    return [row[f"branch_weight_{at}"] for at in range(sum("branch_weight_" in key for key in row))]


def test_few_validation_nodes_keep_their_sums():
    nobody = SimpleNamespace(policy=SAFE)
    assert _sums(nobody, [9.0, 1.0, -2.0]) == [0.0, 0.0, 0.0]
    assert _sums(nobody, [10.0, 1.0, -2.0]) == [10.0, 1.0, -2.0]


@pytest.mark.parametrize("method", ["local", "central"])
def test_training_alone_weighs_its_branches(several, method):
    class Silent:
        def step_done(self, number, steps):
            """Nothing to show."""

        def round_done(self, number, rounds, totals):
            """Nothing to show."""

    settings = replace(several, method=method, self_training=0)
    summary = run_in_process(settings, Silent())
    assert 0 < summary["accuracy"]["test"] <= 1
