"""Walks over Flower's messages: what a plan says that they take, and that they are used again."""

from dataclasses import replace

import pytest

from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.graphs.federation import load_federation
from fedlap_app.settings import parse_settings
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.studies.planning.traffic import traffic_of


@pytest.fixture
def settings(settings):
    return replace(settings, directed=False, method="fedstruct", options=(), walk_steps=2)


def walked(grid, settings, steps=()):
    known = MemberGrid(grid)
    progress = None if steps == () else lambda number, rounds: steps.append((number, rounds))
    return run_offline(known, gather(known, settings), settings, "walks", progress=progress)


@pytest.mark.parametrize("changed", [{}, {"backend": "ckks"}, {"clients": 4, "message_mb": 0.01}])
def test_a_plan_says_what_it_takes(settings, make_grid, changed):
    settings = replace(settings, **changed)
    steps = []
    outcome = walked(make_grid(settings), settings, steps)
    shape = shape_of(load_federation(settings.data_spec))
    traffic = traffic_of(Phase(settings.offline_spec, shape, settings.seed), settings.message_mb)
    assert traffic.round_trips == outcome.price.round_trips
    assert traffic.up == outcome.price.up
    assert traffic.down == outcome.price.down
    number, rounds = steps[-1]
    assert number == rounds == settings.offline_spec.rounds(shape.extent)
    assert walked(make_grid(settings), settings).reused


def test_a_plan_prices_sealed_walks_where_a_simulation_reads_them():
    read = parse_settings({"method": "fedstruct", "read-walks": True})
    assert read.needed_programs == ()
    assert read.offline_spec.program.name == "walks"
