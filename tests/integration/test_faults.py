"""What happens when processes die: the run finishes, with the result that it would have had."""

import time

import pytest

from fedlap_app.graphs.federation import DataSpec
from tests.integration.federation import Federation
from tests.integration.network import why_no_namespaces
from tests.integration.processes import wait_for
from tests.integration.replay import assert_same_scores, replay

pytestmark = pytest.mark.faults
BANKS = DataSpec(dataset="banks", clients=3, accounts=400)
CONFIG = {
    "rounds": 1,
    "local-epochs": 1,
    "self-training": 0,
    "hidden": "16",
    "structure-width": 16,
    "vectors": 10,
    "step-timeout": 400.0,
}
FRESH = {**CONFIG, "refresh-basis": True}
VICTIM = "bank-01"
LIMIT = 900.0


@pytest.fixture(scope="module")
def banks(tmp_path_factory):
    with Federation(tmp_path_factory.mktemp("banks"), BANKS) as federation:
        yield federation


def when_it_receives(federation, what, count, run_id):
    """Wait until the victim has received the count-th such message of a run."""
    party = federation.organisations[VICTIM]
    mark = f"[RUN {run_id}]"

    def received():
        _, _, since = party.output.partition(mark)
        return since.count(f"Receiving: {what} message") >= count

    wait_for(f"{VICTIM} receives {what} for the {count}. time", received, LIMIT)


@pytest.mark.parametrize(
    ("config", "what", "count"),
    [(FRESH, "query.offline", 2), (FRESH, "query.offline", 5), (CONFIG, "train.sealed", 2)],
    ids=["handshake", "offline", "training"],
)
def test_kill_9_of_a_supernode(banks, tmp_path, config, what, count):
    run_id = banks.submit(config)
    when_it_receives(banks, what, count, run_id)
    assert banks.organisations[VICTIM].kill()
    outcome = banks.wait(run_id, LIMIT)
    assert_same_scores(outcome.summary, replay(banks, outcome, CONFIG, tmp_path))


def test_kill_9_and_restart_of_the_superlink(banks, tmp_path):
    run_id = banks.submit(FRESH)
    when_it_receives(banks, "query.offline", 4, run_id)
    assert banks.superlink.kill("flower-superlink")
    outcome = banks.wait(run_id, LIMIT)
    assert_same_scores(outcome.summary, replay(banks, outcome, CONFIG, tmp_path))


def test_the_next_run_goes_on_where_a_dead_coordinator_stopped(banks, tmp_path):
    config = {**CONFIG, "vectors": 12}  # no other run has left a basis with so many
    run_id = banks.submit(config)
    when_it_receives(banks, "query.offline", 5, run_id)
    banks.superlink.die()
    banks.start_superlink()
    outcome = banks.run(config, LIMIT)
    assert outcome.offline["resumed"]
    assert_same_scores(outcome.summary, replay(banks, outcome, config, tmp_path))


@pytest.mark.skipif(bool(why_no_namespaces()), reason=why_no_namespaces() or "namespaces")
def test_90_seconds_without_network(banks, tmp_path):
    run_id = banks.submit(FRESH)
    when_it_receives(banks, "query.offline", 4, run_id)
    banks.network.cut(VICTIM)
    try:
        time.sleep(90)
    finally:
        banks.network.mend(VICTIM)
    outcome = banks.wait(run_id, LIMIT)
    assert_same_scores(outcome.summary, replay(banks, outcome, CONFIG, tmp_path))


def test_training_goes_on_without_an_organisation_that_stays_away(banks):
    config = {**CONFIG, "rounds": 2, "min-clients": 2, "straggler-timeout": 20.0}
    for name in banks.names:  # two are left, each of whom learns the other's update
        with (banks.folder(name) / "data" / "org.toml").open("a", encoding="utf-8") as file:
            file.write("\n[policy]\ntwo-members = true\n")
    run_id = banks.submit(config)
    when_it_receives(banks, "train.sealed", 2, run_id)
    banks.organisations[VICTIM].stop()
    try:
        summary = banks.wait(run_id, LIMIT).summary
    finally:
        banks.organisations[VICTIM].start()
    assert summary["absences"][VICTIM] >= 1
    assert [stage["rounds"] for stage in summary["stages"]] == [2] * len(summary["stages"])
