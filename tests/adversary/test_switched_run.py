"""A coordinator that changes the run configuration of one organisation within a run."""

import pytest

from tests.adversary.dishonest import Coordinator, model_of, settings_of, write_organisations

SENTENCE = "joined with other settings than it has now"


@pytest.fixture
def organisations(tmp_path):
    folders, subgraphs = write_organisations(tmp_path / "orgs")
    return folders, model_of(subgraphs[0])


@pytest.mark.parametrize(
    "changed",
    [{"rounds": 900}, {"self_training": 5}, {"learning_rate": 0.5}, {"local_epochs": 1}],
)
def test_a_run_keeps_the_settings_that_it_joined_with(organisations, changed):
    folders, model = organisations
    server = Coordinator(folders, settings_of())
    server.join()
    switched = server.switched(**changed)
    assert SENTENCE in switched.train(model)
    assert not isinstance(server.train(model), str)
    assert SENTENCE in switched.train(model, 2)
    assert SENTENCE in switched.evaluate(model)
    assert SENTENCE in switched.keep(model)


def test_joining_again_changes_nothing(organisations):
    folders, model = organisations
    server = Coordinator(folders, settings_of())
    server.join()
    assert SENTENCE in server.switched(rounds=900).join()
    assert not isinstance(server.join(), str), "the same settings may join again"
    assert not isinstance(server.train(model), str)
    assert SENTENCE in server.switched(rounds=900).join()


def test_the_pull_of_fedprox_is_that_of_the_settings(organisations):
    folders, model = organisations
    replies = []
    for strength in (0.0, 1e6):
        server = Coordinator(folders, settings_of())
        server.join()
        replies.append(server.train(model, pull=strength)["arrays"])
    assert replies[0] == replies[1]
