"""Cora over four SuperNodes, each organisation in a network namespace of its own."""

import pytest

from fedlap_app.graphs.federation import DataSpec
from tests.flower.server.models import kept_in, same
from tests.integration.federation import Federation
from tests.integration.replay import assert_same_scores, replay

pytestmark = pytest.mark.integration
CONFIG = {
    "dataset": "cora",
    "rounds": 5,
    "local-epochs": 10,
    "self-training": 0,
    "vectors": 100,
    "rank": 100,
    "backend": "mask",
}


@pytest.fixture(scope="module")
def cora(tmp_path_factory, benchmark_data):
    spec = DataSpec(dataset="cora", clients=4, partition="random")
    with Federation(tmp_path_factory.mktemp("cora"), spec) as federation:
        yield federation


@pytest.fixture(scope="module")
def outcome(cora):
    return cora.run(CONFIG, timeout=1000)


def test_the_result_is_that_of_one_process(cora, outcome, tmp_path):
    assert len(cora.names) == 4
    again = replay(cora, outcome, CONFIG, tmp_path)
    assert_same_scores(outcome.summary, again)
    deployed = (kept_in(cora.store(name), outcome.summary["run_id"]) for name in cora.names)
    replayed = (kept_in(tmp_path / n / "data" / "store", again["run_id"]) for n in cora.names)
    assert same(*deployed, *replayed)


def test_100_vectors_take_at_most_20_message_rounds(outcome):
    assert outcome.summary["rounds"] == 5
    assert not outcome.offline["reused"]
    assert outcome.offline["handshake"] == 3
    assert outcome.offline["round_trips"] + outcome.offline["handshake"] <= 20
