"""The handshake alone: names of rows that all holders share and the server cannot guess."""

import hashlib
from functools import partial

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.sums.job.row_keys import KEY_BYTES, read_order
from fedlap_app.sums.job.secrets import stored_secrets
from fedlap_app.sums.programs import RowNames

from .conftest import KRYLOV


@pytest.fixture
def make_names(make_phase):
    """Federations whose jobs end with the handshake."""
    return partial(make_phase, program=RowNames(KRYLOV))


def names_by_node(phase, coordinator):
    """Name of every node, from each member's list and its own order; all must agree."""
    found = {}
    for part in phase.parts:
        data = coordinator.told[part.name]
        names = [data[at : at + KEY_BYTES] for at in range(0, len(data), KEY_BYTES)]
        nodes = [*part.ids.tolist(), *part.external_ids.tolist()]
        order = read_order(phase.root / part.name, coordinator.request.job, len(nodes))
        assert sorted(order.tolist()) == list(range(len(nodes)))
        assert names == sorted(names)
        for name, at in zip(names, order, strict=True):
            assert found.setdefault(nodes[at], name) == name
    return found


@pytest.mark.parametrize("clients", [1, 2, 3, 5])
def test_all_holders_of_a_node_call_it_the_same(make_names, clients):
    phase = make_names(graph={"clients": clients})
    coordinator = phase.run()
    assert [request.kind for name, request, _ in phase.log if name == "org-00"] == [
        "hello", "cards", "pairs",
    ]  # fmt: skip
    found = names_by_node(phase, coordinator)
    assert len(found) == len(set(found.values())) == 40


def test_names_are_no_plain_hashes_of_ids(make_names):
    phase = make_names()
    found = names_by_node(phase, phase.run())
    wire = b"".join(bytes(part) for _, q, r in phase.log for part in (q.common, q.own, r))
    for node, name in found.items():
        assert name != hashlib.blake2b(node.encode(), digest_size=KEY_BYTES).digest()
        assert node.encode() not in wire


def test_names_follow_from_the_seed_in_a_simulation_only(make_names, tmp_path):
    def names(seed=0, secrets=None):
        phase = make_names(seed=seed, secrets=secrets)
        return names_by_node(phase, phase.run())

    def real(name):
        return stored_secrets(tmp_path / name, {}, trust=True)

    assert names() == names()
    assert names() != names(seed=1)
    assert names(secrets=real) != names(secrets=real)


def test_a_repeated_request_has_the_same_answer_and_the_keys_are_gone(make_names):
    phase = make_names()
    coordinator = phase.run()
    for name, request, reply in phase.log[-3:]:
        assert bytes(phase.members[name].answer(request)) == reply
        files = phase.members[name].party.job(coordinator.request.job)
        assert not files.has("begun")
        assert not files.has("agreed")


def test_a_handshake_that_was_interrupted_goes_on(make_names):
    phase = make_names()
    phase.run(rounds=2)
    coordinator = phase.run()
    assert coordinator.resumed
    assert len(names_by_node(phase, coordinator)) == 40


def test_a_handshake_that_starts_again_leaves_the_order_to_the_run_before_it(make_names):
    phase = make_names()
    job = phase.run().request.job
    part = phase.parts[0]
    held = part.num_nodes + part.num_external
    before = read_order(phase.root / part.name, job, held)
    again = phase.run(rounds=2, resume=False)
    assert (again.request.kind, again.request.job) == ("pairs", job)
    assert np.array_equal(read_order(phase.root / part.name, job, held), before)


def test_edges_that_differ_stop_the_run(make_names):
    first, second = make_names(graph={"seed": 1}), make_names(graph={"seed": 1, "edges": 91})
    with pytest.raises(RunError, match="list different edges"):
        make_names(parts=[*first.parts[:2], second.parts[2]]).run()


def test_an_order_that_is_lost_or_of_another_graph_is_told(make_names):
    phase = make_names()
    job = phase.run().request.job
    with pytest.raises(ProtocolError, match="in the store"):
        read_order(phase.root / "org-00", "ab" * 16, 10)
    with pytest.raises(ProtocolError, match="the data changed"):
        read_order(phase.root / "org-00", job, 10_000)


def test_order_tells_nothing_of_the_own_order(make_names):
    phase = make_names(graph={"nodes": 400, "edges": 900})
    job = phase.run().request.job
    part = phase.parts[0]
    order = read_order(phase.root / part.name, job, part.num_nodes + part.num_external)
    correlation = np.corrcoef(order, np.arange(order.size))[0, 1]
    assert abs(correlation) < 0.2
