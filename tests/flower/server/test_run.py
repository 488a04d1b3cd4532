import json
import math
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from flwr.common.serde import message_to_proto

from fedlap_app.errors import ConfigError
from fedlap_app.flower.grids.local_grid import ProcessGrid, new_run_id, partition_configs
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.scores import total
from fedlap_app.models.model_file import ModelFile
from tests.flower.server.models import model_of, same


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_the_run_folder_tells_the_whole_run(settings, make_grid, observer, own_home):
    summary = run(make_grid(settings), settings, observer)
    folder = next((own_home / "runs").iterdir())
    assert folder.is_absolute()
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert json.loads((folder / "config.json").read_text()) == settings.to_config()
    assert [row["round"] for row in lines(folder)] == [1, 2]
    best = lines(folder)[summary["best_round"] - 1]
    assert summary["accuracy"]["test"] == pytest.approx(best["test_accuracy"], abs=1e-12)
    assert summary["rounds"] == settings.rounds == len(observer.rounds)
    assert set(summary["bytes_up"]) == set(summary["client_accuracy"]) == set(summary["bytes_down"])
    assert min(summary["bytes_up"].values()) > 0
    assert summary["seed"] == settings.seed
    assert {"fedlap", "python", "flwr", "torch"} <= set(summary["versions"])
    model = ModelFile.from_bytes((folder / "model.npz").read_bytes(), "model.npz")
    assert all(np.isfinite(value).all() for value in model.parameters.values())


def test_accuracy_over_clients_counts_every_node_once(settings, make_grid, observer):
    summary = run(make_grid(settings), settings, observer)
    sizes = {s.name: int(s.test_mask.sum()) for s in load_federation(settings.data_spec)}
    weighted = sum(summary["client_accuracy"][name]["test"] * size for name, size in sizes.items())
    assert summary["accuracy"]["test"] == pytest.approx(weighted / sum(sizes.values()), abs=1e-12)


def test_the_best_validation_round_is_kept(settings, make_grid, observer):
    settings = replace(settings, rounds=8, local_epochs=5, learning_rate=0.5)
    summary = run(make_grid(settings), settings, observer)
    ranked = [(totals["val_accuracy"], -totals["val_loss"]) for _, _, totals in observer.rounds]
    assert summary["best_round"] == 1 + ranked.index(max(ranked))


@pytest.mark.parametrize("method", ["fedavg", "local"])
def test_the_same_seed_gives_the_same_bits_in_any_order_of_nodes(
    settings, make_grid, observer, method
):
    settings = replace(settings, method=method)
    first = run(make_grid(settings), settings, observer)
    configs = partition_configs(settings.clients)[::-1]
    second = run(make_grid(settings, configs), settings, observer)
    for key in ("accuracy", "loss", "macro_f1", "client_accuracy", "best_round"):
        assert first[key] == second[key]


def test_another_seed_gives_another_result(settings, make_grid, observer):
    first = run(make_grid(settings), settings, observer)
    other = replace(settings, seed=1)
    second = run(make_grid(other), other, observer)
    assert first["loss"] != second["loss"]


@pytest.mark.parametrize("method", ["fedavg", "local"])
def test_a_process_for_every_message_gives_the_same_bits(settings, make_grid, observer, method):
    settings = replace(settings, method=method, clients=2)
    grid = ProcessGrid(partition_configs(2), settings.to_config(), run_id=new_run_id())
    apart = run(grid, settings, observer)
    together = run(make_grid(settings), settings, observer)
    assert apart["accuracy"] == together["accuracy"]
    assert apart["loss"] == together["loss"]


@pytest.mark.slow
def test_a_process_for_every_message_gives_the_same_model_under_seals(
    settings, make_grid, observer
):
    settings = replace(
        settings, method="fedlap+", backend="mask", training_backend="mask", vectors=6, block=3,
        self_training=1, rounds=1,
    )  # fmt: skip
    grid = ProcessGrid(partition_configs(3), settings.to_config(), run_id=new_run_id())
    apart, together = (run(each, settings, observer) for each in (grid, make_grid(settings)))
    assert apart["accuracy"] == together["accuracy"]
    assert same(*map(model_of, (apart, together)))


def test_local_keeps_the_models_at_the_organisations(settings, make_grid, observer, own_home):
    settings = replace(settings, method="local")
    grid = make_grid(settings)
    run(grid, settings, observer)
    folder = next((own_home / "runs").iterdir())
    assert not (folder / "model.npz").exists()
    assert len(list((own_home / "stores").glob("bank-*/jobs/*/model.npz"))) == 3
    assert not any(reply.content.array_records for _, reply in grid.seen)


def test_recall_per_class_stays_in_the_store(settings, make_grid, observer, own_home):
    run(make_grid(settings), settings, observer)
    files = list((own_home / "stores").glob("bank-*/jobs/*/evaluation.json"))
    assert len(files) == 3
    recall = json.loads(files[0].read_text())["test"]["recall"]
    assert all(value is None or 0 <= value <= 1 for value in recall.values())
    assert len(recall) >= 3


def test_no_id_label_feature_or_edge_leaves_a_client(settings, make_grid, observer, caplog):
    for method in ("fedavg", "local"):
        chosen = replace(settings, method=method)
        grid = make_grid(chosen)
        run(grid, chosen, observer)
        wire = b"".join(message_to_proto(reply).SerializeToString() for _, reply in grid.seen)
        for subgraph in load_federation(chosen.data_spec):
            for node in (*subgraph.ids, *subgraph.external_ids):
                assert str(node).encode() not in wire
                assert str(node) not in caplog.text
            for name in (*subgraph.classes, *subgraph.feature_names):
                assert name.encode() not in wire
        names = {key for _, reply in grid.seen for r in reply.content.values() for key in r}
        assert not names & {"labels", "features", "edges", "ids", "recall", "confusion"}


def test_central_needs_all_data_in_one_place(settings, make_grid, observer):
    settings = replace(settings, method="central")
    with pytest.raises(ConfigError, match="`fedlap train` only"):
        run(make_grid(settings), settings, observer)


def test_totals_of_nothing_are_nan():
    empty = {
        f"{s}-{k}": 0
        for s in ("train", "val", "test")
        for k in ("count", "correct", "loss-sum", "macro-f1")
    }
    assert math.isnan(total([empty])["test_accuracy"])


def test_messages_are_plain_flower_messages(settings, make_grid, observer):
    grid = make_grid(settings)
    run(grid, settings, observer)
    kinds = [message.metadata.message_type for message, _ in grid.seen]
    expected = ["query.join"] + ["train"] * settings.rounds + ["evaluate", "evaluate.keep"]
    assert kinds == [kind for kind in expected for _ in range(settings.clients)]
    assert all(isinstance(m, Message) and isinstance(m.content, RecordDict) for m, _ in grid.seen)
