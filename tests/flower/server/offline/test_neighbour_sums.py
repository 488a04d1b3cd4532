"""Sums over neighbours over Flower's messages, beside a basis of the same run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedlap_app.errors import RunError
from fedlap_app.flower.grids.member_grid import MemberGrid
from fedlap_app.flower.grids.post import Post
from fedlap_app.flower.server.federation import gather
from fedlap_app.flower.server.offline import run_offline
from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.graph import join
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.messages import HELLO, Request
from fedlap_app.sums.programs import NeighbourSums
from fedlap_app.sums.programs.neighbour_half import NeighbourResults

from .conftest import bases, phase
from .test_consent import deployed, folders, limit, of  # noqa: F401 - a fixture among them

NAME = "neighbour-sums"


@pytest.fixture
def settings(settings):
    return replace(settings, directed=False, neighbour_hops=2, trust_on_first_use=True)


def sums_of(grid, settings):
    known = MemberGrid(grid)
    return run_offline(known, gather(known, settings), settings, NAME)


def results(settings):
    """What every organisation holds, by name."""
    found = {}
    for store in sorted(Path(settings.store_dir).iterdir()):
        kept = NeighbourResults(store / NAME)
        found[store.name] = kept.load(kept.facts()[0])
    return found


def exact(settings, parts):
    """Rows of (D + 1)^-1/2 (A + I) (D + 1)^-1/2 of the whole graph, twice, times X."""
    whole = join(parts)
    A = whole.out_adjacency().toarray() + np.eye(len(whole.ids))
    root = 1.0 / np.sqrt(A.sum(axis=1))
    M = root[:, None] * A * root
    X = np.asarray(whole.features, dtype=np.float64)
    product = dict(zip(whole.ids.tolist(), M @ (M @ X), strict=True))
    return {part.name: np.array([product[each] for each in part.ids.tolist()]) for part in parts}


@pytest.mark.parametrize(("backend", "bound"), [("mask", 1e-9), ("ckks", 1e-6)])
def test_complete_rows_are_those_of_the_whole_graph(settings, make_grid, backend, bound):
    settings = replace(settings, backend=backend)
    outcome = sums_of(make_grid(settings), settings)
    assert not outcome.reused
    whole = exact(settings, load_federation(settings.data_spec))
    kept = 0
    for name, found in results(settings).items():
        assert found.facts.job == outcome.job
        gap = np.abs(found.sums - whole[name]).max(axis=1)
        assert gap[found.complete].max(initial=0.0) < bound
        kept += int(found.complete.sum())
    assert kept > 0


def test_a_basis_and_sums_of_one_run_lie_side_by_side(settings, make_grid):
    first = phase(make_grid(settings), settings)
    second = sums_of(make_grid(settings), settings)
    assert first.job != second.job
    assert set(bases(settings)) == set(results(settings))
    assert phase(make_grid(settings), settings).reused
    assert sums_of(make_grid(settings), settings).reused


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"backend": "ckks"},
        {"backend": "plain", "hide_topology": False},
        {"layout": "boundary", "neighbour_hops": 1},
        {"message_mb": 0.002},
        {"clients": 4, "neighbour_scaling": "mean"},
    ],
)
def test_a_plan_says_what_it_takes(settings, make_grid, changed):
    settings = replace(settings, **changed)
    outcome = sums_of(make_grid(settings), settings)
    shape = shape_of(load_federation(settings.data_spec))
    planned = Phase(settings.spec_of(NAME), shape, settings.seed)
    traffic = traffic_of(planned, settings.message_mb, named=True)
    assert traffic.round_trips == outcome.price.round_trips
    assert traffic.handshake == outcome.price.handshake
    assert traffic.up == outcome.price.up
    assert traffic.down == outcome.price.down


class DiedError(Exception):
    """Stands for the end of the server."""


def test_a_run_that_dies_at_any_step_goes_on_with_the_same_bits(settings, make_grid, tmp_path):
    whole = replace(settings, store_dir=str(tmp_path / "whole"))
    steps = sums_of(make_grid(whole), whole).price.round_trips
    expected = results(whole)
    for last in range(1, steps):
        torn = replace(settings, store_dir=str(tmp_path / f"torn-{last}"))

        def die(step, rounds, last=last):
            if step == last:
                raise DiedError

        grid = MemberGrid(make_grid(torn))
        with pytest.raises(DiedError):
            run_offline(grid, gather(grid, torn), torn, NAME, progress=die)
        forget_live()
        assert sums_of(make_grid(torn), torn).resumed
        for name, found in results(torn).items():
            assert np.array_equal(found.sums, expected[name].sums)
            assert np.array_equal(found.complete, expected[name].complete)


def test_an_organisation_gives_no_features_unless_it_says_so(settings, folders):  # noqa: F811
    with pytest.raises(RunError, match="most-feature-columns = 0 does not allow"):
        sums_of(deployed(settings, folders), settings)
    for folder in folders:
        limit(folder, "most-feature-columns = 100")
    outcome = sums_of(deployed(settings, folders), settings)
    assert not outcome.reused
    kept = NeighbourResults(of(folders) / "store" / NAME)
    assert kept.load(kept.facts()[0]).complete.any()


def test_a_guard_that_the_server_loosens_is_not_agreed(settings, make_grid):
    """The program of the clients follows from the settings, which have no key for it."""
    grid = MemberGrid(make_grid(settings))
    loose = NeighbourSums(hops=2, scaling="sym", least_contributors=1)
    run_offline(grid, gather(grid, settings), settings, loose)
    assert not all(found.complete.all() for found in results(settings).values())


def test_a_program_that_the_run_has_not_is_refused(settings, make_grid):
    grid = MemberGrid(make_grid(settings))
    members = gather(grid, settings)
    carrier = Post(grid, members, settings, "made-up")
    requests = {member.name: Request(HELLO, "", 0, b"hello") for member in members}
    with pytest.raises(RunError, match="the program 'made-up', which a run of method"):
        list(carrier.exchange(requests))
