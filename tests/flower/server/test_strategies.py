"""Flower's strategies by name, early stopping and kept optimiser state."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from fedlap_app.errors import ConfigError
from fedlap_app.flower.grids.local_grid import ProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.records import from_arrays
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.registry import method_class
from fedlap_app.models.determinism import one_thread
from fedlap_app.models.model_file import ModelFile
from fedlap_app.models.networks import build_model
from fedlap_app.models.options import STRATEGIES
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import cross_entropy


def messages(grid, kind):
    return [(message.content, reply.content) for message, reply in grid.seen
            if message.metadata.message_type == kind]  # fmt: skip


def model_of(record):
    return from_arrays(record.array_records["arrays"])


def final(summary):
    path = Path(summary["run_folder"]) / "model.npz"
    return ModelFile.from_bytes(path.read_bytes(), "model.npz").parameters


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_trains_with_all_members_in_every_round(
    settings, make_grid, observer, strategy
):
    settings = replace(settings, strategy=strategy)
    grid = make_grid(settings)
    summary = run(grid, settings, observer)
    assert len(messages(grid, "train")) == settings.clients * settings.rounds
    assert all(np.isfinite(value).all() for value in final(summary).values())


def test_fedadam_moves_the_model_as_its_formula_says(settings, make_grid, observer):
    settings = replace(settings, strategy="fedadam", rounds=1, server_learning_rate=0.02)
    grid = make_grid(settings)
    run(grid, settings, observer)
    first = model_of(messages(grid, "train")[0][0])
    replies = [reply for _, reply in messages(grid, "train")]
    weights = np.array([r.metric_records["metrics"]["num-examples"] for r in replies], float)
    result = model_of(messages(grid, "evaluate")[0][0])
    for name, start in first.items():
        parts = zip(weights / weights.sum(), replies, strict=True)
        mean = sum(weight * model_of(reply)[name] for weight, reply in parts)
        delta = mean - start
        rate = 0.02 * np.sqrt(1 - 0.99**2) / (1 - 0.9**2)
        moved = start + rate * 0.1 * delta / (np.sqrt(0.01 * delta**2) + 1e-3)
        np.testing.assert_allclose(result[name], moved, rtol=1e-4, atol=1e-6)


def test_a_step_of_the_server_is_adam_on_the_data_of_all(settings, make_grid, observer):
    settings = replace(
        settings, optimizer_at="server", learning_rate=0.01, weight_decay=0.0, dropout=0.0,
        input_dropout=0.0, rounds=1,
    )  # fmt: skip
    grid = make_grid(settings)
    run(grid, settings, observer)
    parts = load_federation(settings.data_spec)
    spec = settings.model_spec(parts[0].num_features, parts[0].num_classes)
    data = [GraphTensors.from_subgraph(part, spec) for part in parts]
    sizes = [len(tensors.splits["train"]) for tensors in data]
    with one_thread():
        model = build_model(spec, settings.seed)
        pairs = zip(sizes, data, strict=True)
        loss = sum(size * cross_entropy(model, part) for size, part in pairs) / sum(sizes)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
    result = model_of(messages(grid, "evaluate")[0][0])
    # Flower counts rounds from 1 and corrects the moments as after one round more.
    rate = 0.01 * np.sqrt(1 - 0.999**2) / (1 - 0.9**2)
    for (name, start), gradient in zip(model.named_parameters(), gradients, strict=True):
        g = gradient.numpy()
        moved = start.detach().numpy() - rate * 0.1 * g / (np.sqrt(0.001 * g**2) + 1e-8)
        clear = np.abs(g) > 1e-5  # the sign of a smaller one is rounding
        np.testing.assert_allclose(result[name][clear], moved[clear], atol=2e-5)


@pytest.mark.parametrize(
    ("key", "value"),
    [("local_epochs", 2), ("optimizer", "sgd"), ("strategy", "fedadam")],
)
def test_what_does_not_go_with_steps_of_the_server_is_refused(settings, key, value):
    with pytest.raises(ConfigError, match="optimizer-at = 'server'"):
        replace(settings, optimizer_at="server", **{key: value})


def test_without_a_server_the_organisation_takes_the_steps(settings):
    alone = replace(settings, optimizer_at="server", method="local")
    assert not method_class("local").of(alone).server_steps
    assert method_class("fedavg").of(replace(alone, method="fedavg")).server_steps


def test_fedprox_keeps_clients_closer_to_the_global_model(settings, make_grid, observer):
    moved = {}
    for strength in (0.0, 100.0):
        chosen = replace(settings, strategy="fedprox", proximal_mu=strength, local_epochs=5)
        grid = make_grid(chosen)
        run(grid, chosen, observer)
        sent, reply = messages(grid, "train")[0]
        start, end = model_of(sent), model_of(reply)
        moved[strength] = sum(np.square(end[name] - start[name]).sum() for name in start)
    assert moved[100.0] < 0.9 * moved[0.0]


def test_the_median_ignores_members_that_had_nothing_to_train_on(settings, make_grid, observer):
    settings = replace(
        settings, clients=40, rounds=1, partition="random", train_ratio=0.02, strategy="fedmedian"
    )
    grid = make_grid(settings)
    run(grid, settings, observer)
    replies = [reply for _, reply in messages(grid, "train")]
    trained = [r for r in replies if r.metric_records["metrics"]["num-examples"]]
    assert 0 < len(trained) < len(replies) / 2
    result = model_of(messages(grid, "evaluate")[0][0])
    for name, value in result.items():
        median = np.median([model_of(reply)[name] for reply in trained], axis=0)
        np.testing.assert_allclose(value, median, rtol=1e-6)


def test_training_ends_when_no_round_is_better_for_too_long(settings, make_grid, observer):
    settings = replace(settings, rounds=60, patience=2, learning_rate=0.3, local_epochs=3)
    summary = run(make_grid(settings), settings, observer)
    assert summary["rounds"] == summary["best_round"] + 2 < 60
    assert len(observer.rounds) == summary["rounds"]


def test_two_rounds_with_kept_moments_are_one_round_of_two_epochs(settings, make_grid, observer):
    one = replace(settings, clients=1, partition="random", dropout=0.0, input_dropout=0.0)
    kept = replace(one, rounds=2, local_epochs=1, optimizer_state="keep", val_ratio=0.0)
    whole = replace(one, rounds=1, local_epochs=2, val_ratio=0.0)
    models = [final(run(make_grid(each), each, observer)) for each in (kept, whole)]
    reset = replace(kept, optimizer_state="reset")
    other = final(run(make_grid(reset), reset, observer))
    assert all(np.array_equal(models[0][name], models[1][name]) for name in models[0])
    assert any(not np.array_equal(models[0][name], other[name]) for name in other)


def test_moments_and_guesses_survive_a_new_process_for_every_message(settings, make_grid, observer):
    settings = replace(settings, clients=2, optimizer_state="keep", self_training=1)
    here = run(make_grid(settings), settings, observer)
    grid = ProcessGrid(partition_configs(2), settings.to_config(), run_id=new_run_id())
    there = run(grid, settings, observer)
    assert there["stages"] == here["stages"]
    assert all(np.array_equal(value, final(there)[name]) for name, value in final(here).items())


def test_models_can_be_weighted_by_nodes(settings, make_grid, observer):
    settings = replace(settings, weight_by="nodes", rounds=1)
    grid = make_grid(settings)
    run(grid, settings, observer)
    weights = [r.metric_records["metrics"]["num-examples"] for _, r in messages(grid, "train")]
    assert sum(weights) == settings.accounts
