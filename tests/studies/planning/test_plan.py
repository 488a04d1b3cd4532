import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.settings import parse_settings
from fedlap_app.studies.planning import plan as plan_of
from fedlap_app.studies.planning.calibration import Rates, _sums
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.plan import find_shape, make_plan
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.studies.planning.values import values_of
from fedlap_app.studies.spectrum import run_spectrum

SMALL = {
    "dataset": "banks", "accounts": 300, "clients": 3, "vectors": 12, "block": 4, "backend": "mask",
}  # fmt: skip
CASES = {
    "mask": {},
    "plain": {"backend": "plain"},
    "ckks": {"backend": "ckks"},
    "ckks in parts": {"backend": "ckks", "message-mb": 0.05, "clients": 4},
    "ckks-4096": {"backend": "ckks", "profile": "ckks-4096", "hide-topology": False},
    "tenseal-default": {"backend": "ckks", "profile": "tenseal-default"},
    "ckks dcgs2": {"backend": "ckks", "solver": "dcgs2", "vectors": 4},
    "ckks arnoldi": {"backend": "ckks", "solver": "arnoldi", "vectors": 4},
    "dcgs2": {"solver": "dcgs2"},
    "arnoldi": {"solver": "arnoldi", "vectors": 5},
    "two": {"clients": 2},
    "many": {"clients": 22, "rank": 3, "vectors": 4},
    "single": {"block": 1},
    "uneven": {"block": 5},
    "one block": {"block": 12},
    "boundary": {"partition": "louvain", "layout": "boundary"},
    "shown": {"hide-topology": False, "clients": 6},
    "boundary shown": {"partition": "louvain", "layout": "boundary", "hide-topology": False},
    "laplacian": {"operator": "laplacian"},
    "regularised": {"operator": "regularised", "backend": "plain"},
    "directed": {"operator": "directed", "directed": True},
    "directed dcgs2": {"operator": "directed", "directed": True, "solver": "dcgs2", "vectors": 6},
    "in parts": {"message-mb": 0.01, "clients": 4, "vectors": 40, "block": 20},
    "small parts": {"message-mb": 0.002, "hide-topology": False, "vectors": 6, "block": 3},
}


RATES = Rates(
    member=0.01,
    peer=0.001,
    message=0.003,
    contribution=1e-4,
    seal=1e-8,
    open=1e-8,
    add=1e-9,
    sparse=1e-9,
    dense=1e-10,
    byte=1e-9,
    edge=1e-6,
)


@pytest.fixture
def known_machine(monkeypatch):
    """Spare the calibration."""
    monkeypatch.setattr(plan_of, "calibrate", lambda settings: RATES)
    monkeypatch.setattr(plan_of, "process_mb", lambda: 100.0)
    monkeypatch.setattr(plan_of, "with_backend", lambda rates, *which: rates)


def predicted(settings):
    settings, shape = find_shape(settings, None, None)
    phase = Phase(settings.offline_spec, shape, settings.seed)
    return traffic_of(phase, settings.message_mb), values_of(phase)


@pytest.mark.parametrize("case", CASES)
def test_a_real_run_takes_the_predicted_round_trips_and_bytes(case):
    settings = parse_settings({**SMALL, **CASES[case]})
    real = run_spectrum(settings, check=False, dump=None)
    traffic, values = predicted(settings)
    assert traffic.round_trips == real["round_trips"]
    assert traffic.handshake == real["handshake_round_trips"]
    assert traffic.mean_up == real["bytes_up_per_client"]
    assert traffic.mean_down == real["bytes_down_per_client"]
    if settings.hide_topology:
        mean = sum(each.wanted for each in values.values()) / len(values)
        assert mean == pytest.approx(real["values_per_client"])


@pytest.mark.parametrize(
    ("vectors", "block", "trips"), [(100, 10, 13), (75, 15, 8), (100, 100, 4), (101, 10, 14)]
)
def test_one_round_trip_a_block_and_three_at_the_end(vectors, block, trips):
    settings = parse_settings({"clients": 10, "vectors": vectors, "block": block})
    settings, shape = find_shape(settings, 5000, None)
    assert traffic_of(Phase(settings.offline_spec, shape), 32.0).round_trips == trips


def test_the_papers_algorithm_takes_a_quadratic_number_of_round_trips():
    settings = parse_settings({"clients": 3, "solver": "arnoldi", "vectors": 100})
    settings, shape = find_shape(settings, 500, None)
    # 1 + sum of l + 2, as the paper counts, the totals, and two for the small eigenproblem.
    assert traffic_of(Phase(settings.offline_spec, shape), 32.0).round_trips == 5251 + 3


def test_the_plan_of_a_federation_that_does_not_exist(known_machine):
    settings = parse_settings({"clients": 4, "vectors": 20, "rank": 10, "backend": "mask"})
    plan = make_plan(settings, nodes=4000, edges=20_000, round_trip_seconds=7.0)
    trips = plan["round_trips"] + plan["handshake_round_trips"]
    assert plan["round_trips"] == 5
    assert plan["seconds"] > 7.0 * trips
    # Three others of 1,000 rows and 20 columns of 8 bytes; the rest is small.
    assert plan["bytes_up_per_client"] == pytest.approx(8 * 20 * 3000, rel=0.1)
    assert plan["backends"]["mask"]["pads_per_value"] == pytest.approx(3.0, abs=0.1)
    assert plan["backends"]["plain"]["pads_per_value"] == 0.0
    # Q, Z and the finished rows are on disk.
    assert plan["disk_mb"]["client"] > 8 * 1000 * (20 + 20 + 10) / 2**20
    assert plan["memory_mb"]["one_process"] > plan["memory_mb"]["client"] > 100.0
    # Side by side all wait for the slowest; one after the other the work of four adds up.
    alone = make_plan(settings, nodes=4000, edges=20_000)
    assert alone["seconds"] == pytest.approx(
        4 * plan["seconds_client"] + plan["seconds_server"], rel=0.01
    )
    assert plan["exact"]


def test_a_plan_for_more_vectors_than_nodes_is_not_exact(known_machine):
    settings, _ = find_shape(parse_settings({"clients": 2, "vectors": 100}), 60, None)
    assert not make_plan(settings, nodes=60)["exact"]


@pytest.mark.parametrize(
    ("values", "nodes", "edges", "words"),
    [
        ({"data": "somewhere"}, 100, None, "exclude"),
        ({}, None, 10, "--nodes"),
        ({"clients": 1}, 100, None, "two organisations"),
        ({"clients": 8}, 5, None, "cannot be divided"),
    ],
)
def test_contradictions_are_refused(values, nodes, edges, words):
    settings = parse_settings(values)
    if values.get("data"):
        settings = settings.with_clients(0)
    with pytest.raises(ConfigError, match=words):
        find_shape(settings, nodes, edges)


@pytest.mark.parametrize(("backend", "clients"), [("mask", 1000), ("ckks", 256)])
def test_many_organisations_can_be_planned(backend, clients):
    """What is sealed to take the time fits the share of one of so many in a sum."""
    settings = parse_settings({"backend": backend, "clients": clients, "vectors": 10})
    rates = _sums(settings.offline_spec, clients)
    assert rates["add"] > 0
