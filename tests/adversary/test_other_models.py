"""A coordinator whose messages name other models, other rounds and runs that cannot be."""

import time

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from client_app.app import app
from fedlap_app.flower.grids.local_grid import InProcessGrid, folder_configs
from fedlap_app.flower.records import to_arrays
from tests.adversary.dishonest import (
    FIRST,
    Coordinator,
    model_of,
    scores_of,
    settings_of,
    write_organisations,
)

MOST = 2**63 - 1


@pytest.fixture
def begun(tmp_path):
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    server = Coordinator(folders, settings_of())
    assert not isinstance(server.join(), str)
    return server, model_of(subgraphs[0]), folders[0] / "store"


def require_refused(reply, store):
    """One sentence that the server may read."""
    assert isinstance(reply, str), reply
    assert "\n" not in reply
    assert str(store.parent) not in reply
    assert " in the client; " not in reply, reply


def test_a_model_is_scored_after_a_round_only(begun):
    server, model, store = begun
    for ask in (server.evaluate, server.keep):
        reply = ask(model)
        require_refused(reply, store)
        assert "took part in no round" in reply
    assert not list((store / "jobs").glob("*/model.npz"))


def test_a_round_has_one_model(begun):
    server, model, store = begun
    first = server.train(model)
    assert scores_of(first) is not None
    other = {**model, "layers.1.bias": model["layers.1.bias"] + np.float32(1e-6)}
    require_refused(server.train(other), store)
    assert server.train(model)["arrays"] == first["arrays"]
    assert scores_of(server.keep(other)) is not None
    kept = next((store / "jobs").glob("*/model.npz")).read_bytes()
    require_refused(server.keep(model), store)
    assert next((store / "jobs").glob("*/model.npz")).read_bytes() == kept


@pytest.mark.parametrize(
    "change",
    [
        lambda model: {},
        lambda model: {**model, "more": np.zeros(3, dtype=np.float32)},
        lambda model: {name: model[name] for name in [*model][1:]},
        lambda model: {**model, "layers.0.bias": np.zeros((8, 8), dtype=np.float32)},
        lambda model: {**model, "layers.0.bias": np.zeros(0, dtype=np.float32)},
        lambda model: {f"../{name}": value for name, value in model.items()},
    ],
)
def test_a_model_of_another_shape(begun, change):
    server, model, store = begun
    require_refused(server.train(change(model)), store)


@pytest.mark.parametrize("number", [0, -1, 4, MOST, -MOST, "1", 1.0, True, [1], b"1"])
def test_a_round_that_is_none(begun, number):
    server, model, store = begun
    require_refused(server.train(model, number), store)


@pytest.mark.parametrize("stage", [-1, 1, MOST, "0", 0.0])
def test_a_stage_that_is_none(begun, stage):
    server, model, store = begun
    for ask in (server.train, server.evaluate, server.keep):
        require_refused(ask(model, stage=stage), store)


@pytest.mark.parametrize("run", [-1, MOST, -MOST, 1, "../../x", b"1", 1.5])
def test_a_run_that_is_none(begun, run):
    server, model, store = begun
    for ask in (server.train, server.evaluate, server.keep):
        require_refused(ask(model, run=run), store)
    assert not list((store / "jobs").glob("*"))


@pytest.mark.parametrize("kind", ["train", "evaluate", "evaluate.keep", "train.alone"])
def test_messages_that_lack_what_they_need(begun, kind):
    server, model, store = begun
    arrays = ArrayRecord({name: Array(value) for name, value in model.items()})
    for content in (
        RecordDict(),
        RecordDict({"arrays": arrays}),
        RecordDict({"config": ConfigRecord({"run": server.run})}),
        RecordDict({"config": arrays, "arrays": ConfigRecord({"a": 1})}),
        RecordDict({"config": ConfigRecord({f"k{n}": "v" * 1000 for n in range(10_000)})}),
    ):
        require_refused(server.ask(kind, content), store)


@pytest.mark.parametrize(
    ("records", "task"),
    [
        ({}, {"found.other": "a"}),
        ({}, {"found.krylov": "A" * 2**20}),
        ({}, {"found.krylov": "../../x"}),
        ({}, {f"found.{number}": "a" for number in range(1000)}),
        ({"x" * 2**20: {}}, {}),
        ({f"more-{number}": {} for number in range(100)}, {}),
    ],
)
def test_what_a_message_names_besides_fills_no_disk(begun, records, task):
    server, model, store = begun
    one = {"a": np.ones(1, dtype=np.float32)}
    content = RecordDict(
        {
            "arrays": to_arrays(model),
            "config": ConfigRecord({"run": server.run, "stage": 0, "server-round": 1, **task}),
            **{name: to_arrays(one) for name in records},
        }
    )
    require_refused(server.ask("train", content), store)
    assert not (store / "jobs").exists()


@pytest.mark.parametrize("key", ["hidden-" * 2**17, "a" * 2**20])
def test_a_setting_of_a_megabyte_takes_no_minutes(begun, key):
    """The nearest valid key was looked for by all of it."""
    folders, started = [begun[2].parent], time.perf_counter()
    configs = folder_configs(folders)
    grid = InProcessGrid(app, configs, {key: 1}, run_id=begun[0].run)
    (reply,) = grid.send_and_receive([Message(RecordDict(), FIRST, "query.join")])
    assert "unknown setting" in str(reply.content["refusal"]["reason"])
    assert time.perf_counter() - started < 20


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden": "65536,65536"},
        {"hidden": ",".join(["16384"] * 40)},
        {"method": "fedlap+", "structure_width": 65536, "structure_hidden": "65536"},
    ],
)
def test_a_run_that_asks_for_a_giant_model(tmp_path, changed):
    """Whoever starts a run says how wide the layers are for which a client takes memory."""
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    server = Coordinator(folders, settings_of(**changed))
    assert not isinstance(server.join(), str)
    reply = server.train(model_of(subgraphs[0]))
    require_refused(reply, folders[0] / "store")
    assert "parameters where 268435456 are the most" in reply
