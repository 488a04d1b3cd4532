"""Stages of self-training for every method; no guess leaves a client."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from flwr.common.serde import message_to_proto

from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.kept import read_guesses
from fedlap_app.methods.task import Task
from fedlap_app.models.guesses import Guesses
from fedlap_app.store.folders import Store


@pytest.fixture
def settings(settings):
    return replace(
        settings, self_training=2, rounds=4, vectors=12, block=4, structure_width=8,
        self_training_confidence=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("method", ["fedlap+", "fedavg", "local", "central"])
def test_every_method_reports_every_stage(settings, observer, method):
    settings = replace(settings, method=method)
    summary = run_in_process(settings, observer)
    assert [stage["rounds"] for stage in summary["stages"]] == [4, 4, 4]
    assert summary["accuracy"] == summary["stages"][-1]["accuracy"]
    assert [number for number, _, _ in observer.rounds] == list(range(1, 13))
    lines = (Path(summary["run_folder"]) / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    numbers = [(row["stage"], row["round"]) for row in rows]
    assert numbers == [(stage, number) for stage in range(3) for number in range(1, 5)]
    if method != "local":  # where every organisation has a best round of its own
        _assert_best_so_far(summary["stages"], rows)


def _assert_best_so_far(stages, rows):
    """What stands after a stage is the best round of it and the earlier ones."""
    for number, stage in enumerate(stages):
        seen = [row for row in rows if row["stage"] <= number]
        best = max(seen, key=lambda row: (row["val_accuracy"], -row["val_loss"]))
        assert (stage["best_stage"], stage["best_round"]) == (best["stage"], best["round"])
        assert stage["accuracy"]["test"] == pytest.approx(best["test_accuracy"])


@pytest.mark.parametrize("method", ["fedlap+", "fedavg", "central"])
def test_a_stage_that_learned_nothing_changes_nothing(settings, observer, method, monkeypatch):
    def misleading(predicted, training, spec):
        classes = predicted.argmax(1)
        wrong = np.roll(np.eye(predicted.shape[1], dtype=np.float32)[classes], 1, axis=1)
        return Guesses(wrong, np.full(len(predicted), 100.0, dtype=np.float32))

    monkeypatch.setattr("fedlap_app.models.guesses.guess", misleading)
    settings = replace(settings, method=method, rounds=10, accounts=600, model="sage")
    summary = run_in_process(settings, observer)
    first, *later = ({**stage, "rounds": 0} for stage in summary["stages"])
    assert later == [first, first]
    assert summary["accuracy"] == first["accuracy"]


@pytest.mark.parametrize("method", ["fedavg", "local", "central"])
def test_the_first_stage_is_the_run_without_self_training(settings, observer, method):
    settings = replace(settings, method=method)
    plain = run_in_process(replace(settings, self_training=0), observer)
    assert run_in_process(settings, observer)["stages"][0] == plain["stages"][0]


def test_guesses_stay_in_the_store(settings, make_grid, observer, own_home):
    grid = make_grid(settings)
    summary = run(grid, settings, observer)
    for part in load_federation(settings.data_spec):
        store = Store(own_home / "stores" / part.name)
        for stage in (1, 2):
            guesses = read_guesses(store, Task(summary["run_id"], stage))
            assert guesses.weights.max() > 0
            assert not guesses.weights[part.train_mask].any()
            classes = guesses.targets.argmax(axis=1)
            secrets = (guesses.targets.tobytes(), classes.tobytes(), classes.astype("u1").tobytes())
            for message, reply in grid.seen:
                wire = b"".join(
                    message_to_proto(each).SerializeToString() for each in (message, reply)
                )
                assert not any(secret in wire for secret in secrets)


def test_an_organisation_without_labels_takes_part(settings, make_grid, observer):
    settings = replace(settings, clients=40, partition="random", train_ratio=0.02)
    summary = run(make_grid(settings), settings, observer)
    assert np.isfinite(summary["loss"]["test"])
