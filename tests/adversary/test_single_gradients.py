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


@pytest.mark.parametrize(
    ("changed", "certainty"),
    [
        ({"local_epochs": 3, "optimizer": "sgd", "learning_rate": 1.0}, 0.0),
        ({"local_epochs": 5}, 18.0),
    ],
)
def test_what_several_steps_still_tell(organisations, changed, certainty):
    """The features of a training node within 1 %, which no refusal of single gradients hides.

    A unit fires for this node alone. With Adam the node is predicted so well that its gradients
    are about epsilon: then a step is g / (|g| + epsilon) in every epoch, which can be solved for g.
    """
    folders, subgraph = organisations
    server = Coordinator(folders, settings_of(**changed))
    assert not isinstance(server.join(), str)
    features = np.asarray(subgraph.features)[subgraph.train_mask]
    node = features[:, 0].argmax()
    column = np.sort(features[:, 0])
    label = int(subgraph.labels[subgraph.train_mask][node])
    model = watching(subgraph, 0, (column[-1] + column[-2]) / 2, 0.0)
    model["layers.1.weight"][0, (label + 1) % subgraph.num_classes] = 1.0
    model["layers.1.bias"][label] = certainty
    moved = from_arrays(server.train(model).array_records["arrays"])
    change = {name: moved[name].astype(float) - model[name] for name in model}
    weight, bias = change["layers.0.weight"][:, 0], change["layers.0.bias"][0]
    if server.settings.optimizer == "adam":
        whole = server.settings.learning_rate * server.settings.local_epochs
        weight, bias = (u / (whole - abs(u)) for u in (weight, bias))
    assert np.abs(weight / bias - features[node]).max() < 0.01 * np.abs(features[node]).max()
