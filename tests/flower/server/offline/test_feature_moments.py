"""Feature moments over Flower's messages: only where a table asks, deployed with three or more."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedlap_app.errors import RunError
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.server.federation import gather, reads_together
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.flower.server.run import run
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.learned import learn
from fedlap_app.methods.registry import method_class
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.sums.programs.feature_moments import Encodings

from .test_consent import deployed, folders, limit  # noqa: F401 - a fixture among them

NAME = "feature-moments"


class Silent:
    def step_done(self, number, steps):
        pass

    def round_done(self, number, rounds, totals):
        pass


@pytest.fixture
def settings(settings):
    quick = {"rounds": 1, "patience": 0, "self_training": 0, "hidden": "4"}
    together = {"standardise": "together", "trust_on_first_use": True, "directed": False}
    return replace(settings, method="fedavg", spectral=False, **quick, **together)


def moments_of(grid, settings):
    known = MemberGrid(grid)
    return run_offline(known, gather(known, settings), settings, NAME)


@pytest.mark.parametrize("changed", [{}, {"backend": "ckks"}, {"class_weights": "balanced"}])
def test_a_plan_says_what_it_takes(settings, make_grid, changed):
    settings = replace(settings, **changed)
    outcome = moments_of(make_grid(settings), settings)
    shape = shape_of(load_federation(settings.data_spec))
    planned = Phase(settings.spec_of(NAME), shape, settings.seed)
    traffic = traffic_of(planned, settings.message_mb, named=True)
    assert traffic.round_trips == outcome.price.round_trips
    assert (traffic.up, traffic.down) == (outcome.price.up, outcome.price.down)


def test_a_run_learns_what_the_whole_table_says_and_keeps_it(settings, make_grid):
    summary = run(make_grid(settings), settings, Silent())
    expected = learn([join(load_federation(settings.data_spec))])
    stores = sorted(Path(settings.store_dir).iterdir())
    for store in stores:
        (facts,) = Encodings(store / NAME).facts()
        found = Encodings(store / NAME).load(facts).encoding
        assert found.mean == pytest.approx(expected.mean, abs=1e-9)
    folder = Path(summary["run_folder"])
    first = json.loads((folder / f"offline-{NAME}.json").read_text())
    assert not first["reused"]
    # A run that asks for a new basis makes no new moments, whose difference would tell.
    again = run(make_grid(settings), replace(settings, refresh_basis=True), Silent())
    second = json.loads((Path(again["run_folder"]) / f"offline-{NAME}.json").read_text())
    assert (second["reused"], second["job"]) == (True, first["job"])


def test_two_deployed_organisations_leave_it_out(settings, folders):  # noqa: F811
    grid = MemberGrid(deployed(settings, folders))
    members = gather(grid, settings)
    method = method_class("fedavg").of(settings)
    assert reads_together(members, method)
    assert not reads_together(members[:2], method)
    simulated = [replace(member, asks=1) for member in members[:2]]
    assert reads_together(simulated, method)
    silent = [replace(member, asks=0) for member in members]
    assert not reads_together(silent, method)
    alone = method_class("fedavg").of(replace(settings, standardise="alone"))
    assert not reads_together(members, alone)


def test_an_organisation_limits_how_often(settings, folders):  # noqa: F811
    for folder in folders:
        limit(folder, "most-feature-moments = 0")
    with pytest.raises(RunError, match="most-feature-moments = 0 does not allow another"):
        moments_of(deployed(settings, folders), settings)
