"""A coordinator that asks for a gradient, in which a unit that fires for one node leaves it."""

import numpy as np
import pytest

from fedlap_app.flower.records import from_arrays
from tests.adversary.dishonest import Coordinator, settings_of, watching, write_organisations

ASKED = [
    {"optimizer_at": "server", "local_epochs": 1},
    {"optimizer": "sgd", "local_epochs": 1, "learning_rate": 1.0},
]


def stolen(server, subgraph):
    """Features of the training node with the largest first one, from one train message."""
    column = np.sort(np.asarray(subgraph.features)[subgraph.train_mask, 0])
    model = watching(subgraph, 0, (column[-1] + column[-2]) / 2)
    model["layers.1.weight"][0, 1:] = -1.0
    reply = server.train(model)
    if isinstance(reply, str):
        return reply
    moved = from_arrays(reply.array_records["arrays"])
    change = {name: moved[name] - model[name] for name in model}
    return change["layers.0.weight"][:, 0] / change["layers.0.bias"][0]


@pytest.fixture
def organisations(tmp_path):
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    return folders, subgraphs[0]


@pytest.mark.parametrize("changed", ASKED)
def test_no_features_from_one_train_message(organisations, changed):
    folders, subgraph = organisations
    server = Coordinator(folders, settings_of(**changed))
    refused = server.join()
    assert isinstance(refused, str)
    assert "(server-steps)" in refused
    assert "(server-steps)" in stolen(server, subgraph)


@pytest.mark.parametrize("changed", ASKED)
def test_no_features_once_the_run_configuration_is_switched(organisations, changed):
    folders, subgraph = organisations
    server = Coordinator(folders, settings_of())
    assert not isinstance(server.join(), str)
    assert isinstance(stolen(server.switched(**changed), subgraph), str)


@pytest.mark.parametrize("changed", ASKED)
def test_a_policy_that_allows_it_shows_why_it_is_off(tmp_path, changed):
    folders, subgraphs = write_organisations(tmp_path / "orgs", ["server-steps = true"])
    server = Coordinator(folders, settings_of(**changed))
    assert not isinstance(server.join(), str)
    rows = np.asarray(subgraphs[0].features)[subgraphs[0].train_mask]
    found = stolen(server, subgraphs[0])
    np.testing.assert_allclose(found, rows[rows[:, 0].argmax()], rtol=1e-3, atol=1e-4)
