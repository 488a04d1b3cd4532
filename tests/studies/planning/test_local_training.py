"""What training takes: the round of the largest organisation, and what most of it goes to."""

from dataclasses import replace

import pytest

from fedlap_app.graphs.federation import load_federation
from fedlap_app.settings import Settings
from fedlap_app.studies.planning.local_training import local_price, with_bottleneck

SMALL = Settings(accounts=240, clients=3, vectors=8, rank=4, block=4, hidden="4", rounds=10)


def test_a_round_is_measured_on_the_largest_organisation_and_scaled_to_all():
    parts = load_federation(SMALL.data_spec)
    found = local_price(SMALL, parts)
    sizes = [part.num_nodes + part.edge_index.shape[1] for part in parts]
    share = found["local_seconds_per_round_all"] / found["local_seconds_per_round"]
    assert share == pytest.approx(sum(sizes) / max(sizes))
    # What a backward pass holds grows with the width, and does not depend on the clock.
    assert local_price(SMALL, parts)["local_memory_mb"] == found["local_memory_mb"]
    wide = local_price(replace(SMALL, hidden="64"), parts)
    assert wide["local_memory_mb"] > found["local_memory_mb"]


def test_who_reads_what_others_know_is_not_guessed():
    parts = load_federation(SMALL.data_spec)
    for method in ("fedgcn", "central", "local"):
        assert local_price(replace(SMALL, method=method), parts) == {}


@pytest.mark.parametrize(
    ("together", "round_trip", "seconds", "bottleneck"),
    [
        (True, 0.1, 3 * 1.0 + 3 * 0.5 + 0.25 + 0.1, "local training"),
        (False, 7.0, 1.0 + 0.5 + 0.25 + 7.0, "round trips"),
    ],
)
def test_the_largest_part_is_named(together, round_trip, seconds, bottleneck):
    price = {"local_seconds_per_round": 1.0, "local_seconds_per_round_all": 3.0}
    price |= {"sealing_seconds_per_round": 0.5, "opening_seconds_per_round": 0.25}
    settings = replace(SMALL, self_training=1)
    found = with_bottleneck(price, settings, round_trip, together=together)
    assert found["rounds"] == 20
    assert found["seconds"] == pytest.approx(20 * seconds)
    assert found["bottleneck"] == bottleneck
