"""Bytes grow as in the paper's table of communication costs, over three sizes of each quantity.

Plans are held against measured traffic elsewhere; here only their growth counts. n nodes, K
organisations, r vectors, d feature columns, L steps, E rounds, theta parameters.
"""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.methods.base import Schema
from fedlap_app.settings import parse_settings
from fedlap_app.studies.planning import training_price
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import Shape, equal_parts
from fedlap_app.studies.planning.traffic import traffic_of

USUAL = {"backend": "mask", "clients": 6}
SIZES = (1, 2, 3)


def before(method, *, nodes=6000, features=64, **more):
    """Bytes that all organisations send before training."""
    settings = parse_settings({**USUAL, "method": method, **more})
    parts = equal_parts(nodes, settings.clients).parts
    shape = Shape(tuple(replace(part, features=features) for part in parts))
    phase = Phase(settings.offline_spec, shape)
    return sum(traffic_of(phase, settings.message_mb).up.values())


def per_stage(method, schema, **more):
    """Bytes that an organisation sends in training, and parameters."""
    values = {**USUAL, "method": method, "self-training": 0, "model": "sage", "hidden": "16"}
    settings = parse_settings({**values, **more})
    found = training_price.training_price(settings, schema)
    return found["bytes_up_per_client"], found["parameters"]


def grows_by_the_same(values, *, within=0.05):
    """Whether three values are on a line; gives its slope."""
    first, second = np.diff(values)
    np.testing.assert_allclose(second, first, rtol=within)
    return first


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("fedlap+", {"vectors": 100}),  # r K n
        ("fedgcn", {}),  # n d c: everyone sends to everyone
    ],
)
def test_before_training_bytes_are_linear_in_nodes_and_organisations(method, more):
    nodes = [before(method, nodes=20_000 * size, **more) for size in SIZES]
    assert grows_by_the_same(nodes) == pytest.approx(nodes[0], rel=0.1)
    clients = [before(method, nodes=20_000, clients=1 + 5 * size, **more) for size in SIZES]
    assert grows_by_the_same(clients, within=0.1) == pytest.approx(clients[0], rel=0.1)


def test_before_training_bytes_are_linear_in_vectors_and_columns():
    vectors = [before("fedlap+", nodes=20_000, vectors=50 * size) for size in SIZES]
    assert grows_by_the_same(vectors) == pytest.approx(vectors[0], rel=0.15)
    columns = [before("fedgcn", nodes=20_000, features=128 * size) for size in SIZES]
    assert grows_by_the_same(columns) == pytest.approx(columns[0], rel=0.1)


def test_rows_of_walks_are_linear_in_steps_and_dense():
    """The paper's p entries of a row are n here: a sealed row does not show where they are."""
    steps = [before("fedstruct", **{"walk-steps": 3 * size}) for size in SIZES]
    assert grows_by_the_same(steps) == pytest.approx(steps[0], rel=0.05)
    nodes = [before("fedstruct", nodes=3000 * size, **{"walk-steps": 3}) for size in SIZES]
    np.testing.assert_allclose(np.array(nodes) / nodes[0], [1, 4, 9], rtol=0.1)


@pytest.mark.parametrize("method", ["fedavg", "fedsgd", "fedgcn", "fedlap+", "mlp"])
def test_training_takes_rounds_times_parameters(method, monkeypatch):
    monkeypatch.setattr(training_price, "_measured", lambda *_: (0.0, 0.0))
    schema = Schema(500, 5)
    rounds = [per_stage(method, schema, rounds=10 * size)[0] for size in SIZES]
    slope, size = grows_by_the_same(rounds), per_stage(method, schema)[1]
    widths = [per_stage(method, schema, rounds=10, hidden=f"{64 * size}") for size in SIZES]
    bytes_, sizes = np.array(widths).T
    np.testing.assert_allclose(np.diff(bytes_) / np.diff(sizes), slope / size, rtol=0.1)


def test_rows_of_all_nodes_are_in_every_round_of_fedstruct(monkeypatch):
    """E K d n beside E K theta."""
    monkeypatch.setattr(training_price, "_measured", lambda *_: (0.0, 0.0))
    more = {"rounds": 10, "structure-width": 16}
    nodes = [per_stage("fedstruct", Schema(50, 5, 500 * size), **more) for size in SIZES]
    slope = grows_by_the_same([sent for sent, _ in nodes])
    grows_by_the_same([size for _, size in nodes], within=0.0)
    assert slope == pytest.approx(10 * 4 * 500 * 16, rel=0.05)
