"""Organisations that list different edges between them."""

from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.errors import RunError

from .conftest import random_parts


def without(part, edges):
    """The part without some of its edges with others (undirected); loses lonely externals."""
    index, n = part.edge_index, part.num_nodes
    inter = np.flatnonzero((index[0] < n) & (index[1] >= n))[:edges]
    drop = {tuple(index[:, i]) for i in inter} | {tuple(index[::-1, i]) for i in inter}
    keep = np.array([tuple(edge) not in drop for edge in index.T])
    used = np.unique(index[:, keep][index[:, keep] >= n])
    renumber = np.concatenate([np.arange(n), np.full(part.num_external, -1)])
    renumber[used] = n + np.arange(used.size)
    removed = [(part.ids[index[0, i]], part.external_ids[index[1, i] - n]) for i in inter]
    changed = replace(
        part,
        external_ids=part.external_ids[used - n],
        external_owners=part.external_owners[used - n],
        edge_index=renumber[index[:, keep]],
        edge_weight=part.edge_weight[keep],
    )
    return changed, removed


def test_the_error_has_the_counts_and_local_logs_the_ids(make_phase):
    parts = random_parts(clients=2)
    parts[1], removed = without(parts[1], 3)
    phase = make_phase(parts)
    with pytest.raises(RunError, match="org-00 and org-01: 3 edges only at org-00, 0 only") as got:
        phase.run()
    log = (phase.root / "org-00" / "offline" / "edge-mismatch.log").read_text()
    assert len(log.splitlines()) == 3
    for mine, theirs in removed:
        assert str(mine) in log
        assert str(theirs) in log
        assert str(mine) not in str(got.value)
    other = phase.root / "org-01" / "offline" / "edge-mismatch.log"
    assert not other.exists() or other.read_text() == ""
    wire = b"".join(bytes(part) for _, q, r in phase.log for part in (q.common, q.own, r))
    assert not any(str(node).encode() in wire for part in parts for node in part.ids)


def test_a_different_weight_counts_on_both_sides(make_phase):
    parts = random_parts(clients=3)
    n = parts[0].num_nodes
    index = parts[0].edge_index
    first = int(np.flatnonzero((index[0] < n) & (index[1] >= n))[0])
    pair = [i for i in range(index.shape[1]) if set(index[:, i]) == set(index[:, first])]
    weight = parts[0].edge_weight.copy()
    weight[pair] = 2.5
    owner = str(parts[0].external_owners[index[1, first] - n])
    phase = make_phase([replace(parts[0], edge_weight=weight), *parts[1:]])
    sentence = f"org-00 and {owner}: 1 edge only at org-00, 1 only at {owner}"
    with pytest.raises(RunError, match=sentence):
        phase.run()
    assert [q.kind for n, q, _ in phase.log if n == "org-00"][-1] == "compare"


def test_an_edge_that_only_one_side_knows_at_all(make_phase):
    parts = random_parts(nodes=30, clients=2, edges=2, seed=4)
    one, _ = without(parts[0], 99)
    phase = make_phase([one, parts[1]])
    with pytest.raises(RunError, match=r"0 edges only at org-00, [12] only at org-01"):
        phase.run()


def test_a_partner_that_takes_no_part(make_phase):
    phase = make_phase(random_parts(clients=3)[:2])
    with pytest.raises(RunError, match=r"1 of the organisations .* take no part") as got:
        phase.run()
    assert "org-02" not in str(got.value)
    assert "org-02" in (phase.root / "org-00/offline/missing-organisations.log").read_text()
