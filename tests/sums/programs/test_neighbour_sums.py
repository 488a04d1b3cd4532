"""Sums over neighbours: those of the whole graph, but for what would show a single row."""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.sums.programs import NeighbourSums
from tests.sums.programs.conftest import (
    gathered,
    graph_of,
    hop_matrix,
    parts_of,
    whole,
)

UNGUARDED = NeighbourSums(least_contributors=1, block=3)


def expected(parts, program, X=None):
    A, features = whole(parts)
    M = hop_matrix(A, program.scaling)
    X = features if X is None else X
    for _ in range(program.hops):
        X = M @ X
    return X


@pytest.mark.parametrize("scaling", ["none", "mean", "sym"])
@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("clients", [2, 5])
def test_the_sums_are_those_of_the_whole_graph(
    make_phase, random_federation, scaling, hops, clients
):
    program = replace(UNGUARDED, scaling=scaling, hops=hops)
    for seed in range(3):
        parts = random_federation(seed, clients=clients)
        phase = make_phase(parts, program=program)
        phase.run()
        sums, complete = gathered(phase)
        assert np.abs(sums - expected(parts, program)).max() < 1e-9
        assert complete.all()


@pytest.mark.parametrize(("backend", "bound"), [("plain", 1e-9), ("ckks", 1e-6)])
@pytest.mark.parametrize("layout", ["full", "boundary"])
@pytest.mark.parametrize("hide_topology", [True, False])
def test_every_way_to_sum(make_phase, random_federation, backend, bound, layout, hide_topology):
    parts = random_federation(5, clients=3, large=30.0)
    program = replace(UNGUARDED, hops=2)
    spec = {"layout": layout, "hide_topology": hide_topology}
    phase = make_phase(parts, program=program, backend=backend, **spec)
    phase.run()
    exact = expected(parts, program)
    assert np.abs(gathered(phase)[0] - exact).max() < bound * max(1.0, np.abs(exact).max())


def test_members_of_one_node_and_members_without_shared_edges(make_phase):
    rng = np.random.default_rng(1)
    # Node 4 is an organisation; 5 and 6 are one without shared edges; 7 has no edge at all.
    edges = [(0, 1), (1, 2), (2, 3), (0, 4), (2, 4), (5, 6)]
    parts = parts_of(graph_of(edges, 8, rng.standard_normal((8, 3))), [0, 0, 1, 1, 2, 3, 3, 0])
    for program in (UNGUARDED, replace(UNGUARDED, hops=2, scaling="sym")):
        for hide_topology in (True, False):
            phase = make_phase(parts, program=program, hide_topology=hide_topology)
            phase.run()
            assert np.abs(gathered(phase)[0] - expected(parts, program)).max() < 1e-9


def test_directions_are_ignored(make_phase, random_federation):
    parts = random_federation(2, directed=True)
    phase = make_phase(parts, program=UNGUARDED, directed=True)
    phase.run()
    assert np.abs(gathered(phase)[0] - expected(parts, UNGUARDED)).max() < 1e-9


@pytest.mark.parametrize("large", [1e-6, 1e5, 1e9])
@pytest.mark.parametrize("backend", ["mask", "ckks"])
def test_numbers_of_any_size_are_scaled_alike(make_phase, random_federation, large, backend):
    parts = random_federation(3, large=large)
    phase = make_phase(parts, program=UNGUARDED, backend=backend)
    phase.run()
    exact = expected(parts, UNGUARDED)
    bound = 1e-9 if backend == "ckks" else 1e-13
    assert np.abs(gathered(phase)[0] - exact).max() < bound * np.abs(exact).max()


@pytest.mark.parametrize("bad", [1e13, np.inf])
def test_numbers_beyond_any_scale_are_refused(make_phase, random_federation, bad):
    parts = random_federation(3)
    phase = make_phase(parts, program=UNGUARDED)
    make = phase.member

    def member(part):
        found = make(part)
        values = np.full((part.num_nodes, 2), bad)
        found.party = replace(found.party, values=values)
        return found

    phase.member = member
    with pytest.raises(DataError, match="scale the features down"):
        phase.run()


def test_any_numbers_can_be_handed_in(make_phase, random_federation):
    parts = random_federation(4)
    phase = make_phase(parts, program=UNGUARDED)
    rng = np.random.default_rng(0)
    values = {part.name: rng.standard_normal((part.num_nodes, 5)) for part in parts}
    make = phase.member

    def member(part):
        found = make(part)
        found.party = replace(found.party, values=values[part.name])
        return found

    phase.member = member
    phase.run()
    given = np.vstack([values[part.name] for part in parts])
    exact = expected(parts, UNGUARDED, given)
    assert np.abs(gathered(phase)[0] - exact).max() < 1e-9
    # Other numbers are other data: nothing is reused.
    values["org-00"] = values["org-00"] + 1.0
    assert not phase.run().reused
    with pytest.raises(ConfigError, match="give each node a row"):
        replace(phase.members["org-00"].party, values=np.zeros((1, 2)))


class TestGuard:
    """Nobody receives what is the row of one foreign node."""

    # Organisations 0: nodes 0, 1, 2; 1: nodes 3, 4; 2: node 5.
    OWNER = (0, 0, 0, 1, 1, 2)
    # Node 0 has one foreign neighbour, node 1 two of one organisation, node 2 two of two.
    EDGES = ((0, 3), (1, 3), (1, 4), (2, 4), (2, 5), (0, 1))

    @pytest.fixture
    def parts(self):
        X = np.random.default_rng(0).standard_normal((6, 2))
        return parts_of(graph_of(self.EDGES, 6, X), self.OWNER)

    def test_a_lone_foreign_neighbour_is_left_out(self, make_phase, parts):
        phase = make_phase(parts, program=NeighbourSums())
        phase.run()
        sums, complete = gathered(phase)
        A, X = whole(parts)
        foreign = np.not_equal.outer(self.OWNER, self.OWNER) * A
        alone = foreign.sum(axis=1) == 1
        assert alone.tolist() == [True, False, False, False, False, True]
        assert complete.tolist() == (~alone).tolist()
        left = A - foreign * alone[:, None]
        assert np.abs(sums - left @ X).max() < 1e-9

    def test_no_ciphertext_carries_it_either(self, make_phase, parts):
        """With `plain` all can be read: nothing is sent for the node, and nothing for its slot."""
        phase = make_phase(parts, program=NeighbourSums(), backend="plain")
        phase.run()
        row = np.float64(np.float32(parts[1].features[0]))
        assert parts[1].ids[0] == "n003"
        sent = b"".join(reply for name, _, reply in phase.log if name == "org-01")
        for shift in range(-60, 60):
            assert (row * 2.0**shift).astype("<f8").tobytes() not in sent
        unguarded = make_phase(parts, program=replace(NeighbourSums(), least_contributors=1))
        unguarded.spec = replace(unguarded.spec, backend="plain")
        unguarded.run()
        sent = b"".join(reply for name, _, reply in unguarded.log if name == "org-01")
        words = [(row * 2.0**shift).astype("<f8").tobytes() for shift in range(-60, 60)]
        assert any(each in sent for each in words)

    def test_a_lying_recipient_gets_nothing_from_a_sender_who_knows(self, make_phase, monkeypatch):
        """Of two members the other one knows all foreign neighbours, whatever it is told."""
        X = np.random.default_rng(0).standard_normal((4, 2))
        parts = parts_of(graph_of([(0, 2), (1, 2), (1, 3)], 4, X), [0, 0, 1, 1])
        monkeypatch.setattr(
            NeighbourSums, "unheard", lambda self, part: np.zeros(part.num_nodes, dtype=bool)
        )
        phase = make_phase(parts, program=NeighbourSums(), backend="plain")
        received = []
        phase.run(around=_hearing(received))
        rows = {tuple(np.round(row, 9)) for row in np.vstack(received) if row.any()}
        assert rows == {
            tuple(np.round(X[[2, 3]].astype(np.float32).astype(float).sum(axis=0), 9)),
            tuple(np.round(X[[0, 1]].astype(np.float32).astype(float).sum(axis=0), 9)),
        }

    @pytest.mark.parametrize("scaling", ["none", "mean", "sym"])
    def test_two_hops_bring_no_single_row(self, make_phase, random_federation, scaling):
        """Every received number mixes two foreign rows or none, and complete rows are exact."""
        program = NeighbourSums(hops=2, scaling=scaling, block=2)
        for seed in range(6):
            parts = random_federation(seed, nodes=30, clients=3, edges=32, features=30)
            parts = [replace(part, features=_one_hot(parts, part)) for part in parts]
            phase = make_phase(parts, program=program)
            received = {}
            phase.run(around=_hearing_all(received))
            sums, complete = gathered(phase)
            np.testing.assert_allclose(
                sums[complete], expected(parts, program)[complete], atol=1e-9
            )
            assert complete.any()
            assert not complete.all()
            start = 0
            for part in parts:
                own = np.arange(start, start + part.num_nodes)
                start += part.num_nodes
                for block in received[part.name]:
                    # One column a node: a row shows whose numbers a sum is made of.
                    foreign = np.delete(block, own, axis=1)
                    mixed = (np.abs(foreign) > 1e-9).sum(axis=1)
                    assert set(np.unique(mixed)) & {1} == set()

    def test_an_incomplete_row_is_told(self, make_phase, random_federation):
        program = NeighbourSums(hops=2)
        parts = random_federation(1, nodes=30, clients=3, edges=32)
        phase = make_phase(parts, program=program)
        phase.run()
        sums, complete = gathered(phase)
        wrong = np.abs(sums - expected(parts, program)).max(axis=1) > 1e-9
        assert not (wrong & complete).any()
        assert wrong.any()


def _one_hot(parts, part):
    """A column for every node of the whole graph."""
    count, start = sum(p.num_nodes for p in parts), 0
    for each in parts:
        if each is part:
            break
        start += each.num_nodes
    return np.eye(count, dtype=np.float32)[start : start + part.num_nodes]


def _hearing(received):
    """Keep what every half is given."""
    everything = {}

    def around(member, request):
        before = len(everything.get(member.party.name, []))
        reply = _hearing_all(everything)(member, request)
        received.extend(everything.get(member.party.name, [])[before:])
        return reply

    return around


def _hearing_all(received):
    """Keep the received rows of every hop, by member."""
    from fedlap_app.spectral.neighbourhood import Neighbourhood

    def around(member, request):
        original = Neighbourhood.combine

        def combine(self, X, block):
            received.setdefault(member.party.name, []).append(np.array(block))
            return original(self, X, block)

        Neighbourhood.combine = combine
        try:
            return member.answer(request)
        finally:
            Neighbourhood.combine = original

    return around
