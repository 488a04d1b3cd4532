"""Walks that organisations compute together: those of the whole graph, pruned alike."""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.errors import ConsentError, DataError, ProtocolError
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.reach import walks
from fedlap_app.privacy.policy import SAFE
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.program import Extent
from fedlap_app.sums.programs import Walks
from fedlap_app.sums.programs import walks as module

from .conftest import with_policy

PROGRAM = Walks(steps=3, kept=5, block=16)


def gathered(phase):
    """Rows of all organisations, one below the other."""
    found = []
    for part in phase.parts:
        results = phase.members[part.name].party.results
        found.append(results.load(results.facts()[0]).weights.toarray())
    return np.vstack(found)


def exact(parts, program):
    return walks(join(parts).in_adjacency(), program.steps, program.kept).toarray()


@pytest.mark.parametrize("kept", [0, 1, 5])
@pytest.mark.parametrize("directed", [False, True])
def test_the_walks_are_those_of_the_whole_graph(make_phase, random_federation, kept, directed):
    program = replace(PROGRAM, kept=kept)
    for seed, clients in ((0, 2), (1, 5)):
        parts = random_federation(seed, clients=clients, directed=directed)
        phase = make_phase(parts, program=program, directed=directed)
        phase.run()
        assert np.abs(gathered(phase) - exact(parts, program)).max() < 1e-9
        if not kept:
            np.testing.assert_allclose(gathered(phase).sum(axis=1), 1.0, atol=1e-4)


@pytest.mark.parametrize("backend", ["plain", "ckks"])
@pytest.mark.parametrize("hide_topology", [True, False])
def test_every_way_to_sum_keeps_the_same_entries(
    make_phase, random_federation, backend, hide_topology
):
    parts = random_federation(5, clients=3)
    phase = make_phase(parts, program=PROGRAM, backend=backend, hide_topology=hide_topology)
    phase.run()
    assert np.abs(gathered(phase) - exact(parts, PROGRAM)).max() < 1e-6


def test_a_new_process_for_every_message_gives_the_same_bits(make_phase, random_federation):
    parts = random_federation(7, clients=3)
    undisturbed = make_phase(parts, program=PROGRAM)
    undisturbed.run()
    phase = make_phase(parts, program=PROGRAM)

    def fresh(member, request):
        forget_live()
        return member.answer(request)

    phase.run(around=fresh)
    assert np.array_equal(gathered(phase), gathered(undisturbed))


def test_the_rounds_are_those_of_the_schedule(make_phase, random_federation):
    phase = make_phase(random_federation(7, clients=3), program=PROGRAM)
    phase.run()
    steps = [request for name, request, _ in phase.log if name == "org-00"]
    extent = Extent(nodes=40)
    assert len(steps) == 3 + PROGRAM.rounds(extent) == 3 + 1 + 3 * (1 + 3)
    assert PROGRAM.columns(extent) == 3 * 40


def test_larger_graphs_are_refused_with_what_to_do(make_phase, random_federation, monkeypatch):
    monkeypatch.setattr(module, "MOST_NODES", 39)
    phase = make_phase(random_federation(7, clients=3), program=PROGRAM)
    with pytest.raises(DataError, match="read-walks = true"):
        phase.run()


def test_nobody_gives_rows_of_walks_by_default(make_phase, random_federation):
    phase = make_phase(random_federation(7, clients=3), program=PROGRAM)
    phase = with_policy(phase, replace(SAFE, trust_on_first_use=True))
    with pytest.raises(ConsentError, match="most-walk-columns = 0 does not allow the 3 walk"):
        phase.run()


@pytest.mark.parametrize("step", [2, 3, 5])
def test_an_altered_sum_ends_the_job(make_phase, random_federation, step):
    phase = make_phase(random_federation(7, clients=3), program=PROGRAM)
    coordinator = phase.run(rounds=step + 1)
    member, request = phase.members["org-01"], coordinator.requests["org-01"]
    assert request.step == step
    altered = bytearray(request.common)
    altered[-1] ^= 1
    with pytest.raises(ProtocolError):
        member.answer(replace(request, common=bytes(altered)))
