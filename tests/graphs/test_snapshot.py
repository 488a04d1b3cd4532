"""What changed in a part since a snapshot was taken."""

import dataclasses

import numpy as np
import scipy.sparse as sp

from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.graphs.without import without
from tests.graphs.conftest import cut_randomly, random_graph


def edges_of(part):
    ids = np.concatenate([part.ids, part.external_ids])
    return set(map(tuple, ids[part.edge_index].T.tolist()))


def test_nothing_changed_after_a_round_trip():
    for directed in (False, True):
        part = cut_randomly(random_graph(directed=directed))[0]
        again = Snapshot.unpack(Snapshot.of(part).pack())
        assert again.changes(part).share == 0.0
        assert str(again.changes(part)) == "nothing"
        assert np.array_equal(again.places(part.ids), np.arange(part.num_nodes))


def test_changes_are_those_of_sets():
    for directed in (False, True):
        part = cut_randomly(random_graph(seed=3, directed=directed))[1]
        came, went = part.ids[[2, 5]], part.ids[[0]]
        before = without(part, np.concatenate([came, part.external_ids[:1]]))
        after = without(part, went)
        found = Snapshot.of(before).changes(after)
        once = 1 if directed else 2
        assert (found.nodes, found.nodes_added, found.nodes_removed) == (before.num_nodes, 2, 1)
        assert found.edges_added == len(edges_of(after) - edges_of(before)) // once
        assert found.edges_removed == len(edges_of(before) - edges_of(after)) // once
        assert found.features_changed == 0
        nodes, edges = 3 / before.num_nodes, found.edges_added + found.edges_removed
        assert found.share == max(nodes, edges / (len(edges_of(before)) // once))


def test_features_count_by_their_values_not_their_form():
    part = cut_randomly(random_graph(seed=4))[0]
    snapshot = Snapshot.of(part)
    features = np.array(part.features)
    sparse = dataclasses.replace(part, features=sp.csr_array(features))
    assert snapshot.changes(sparse).features_changed == 0
    features[1], features[3, 0] = features[1][::-1], features[3, 0] + 1
    changed = snapshot.changes(dataclasses.replace(part, features=features))
    assert changed.features_changed == 2
    assert str(changed) == "2 nodes have other features"


def test_a_part_without_nodes_has_none_of_their_edges():
    part = cut_randomly(random_graph(seed=5))[2]
    gone = np.concatenate([part.ids[::4], part.external_ids[::3]])
    left = without(part, gone)
    assert set(left.ids) == set(part.ids) - set(gone)
    kept = {edge for edge in edges_of(part) if not set(edge) & set(gone)}
    assert edges_of(left) == kept
    names = part.ids[part.train_mask]
    assert set(left.ids[left.train_mask]) == set(names) - set(gone)
    assert without(part, np.array(["nobody"])).fingerprint() == part.fingerprint()
