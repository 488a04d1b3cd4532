"""Programs run by the members and the coordinator of `tests/sums/job`."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.graphs.graph import Graph, cut, join
from tests.sums.job.conftest import make_phase, no_memory  # noqa: F401 - fixtures


def graph_of(edges, nodes, features, *, directed=False, weights=None):
    """A graph with these edges and features."""
    edges = np.asarray(edges).reshape(-1, 2).T
    return Graph(
        ids=np.array([f"n{i:03d}" for i in range(nodes)]),
        features=np.asarray(features, dtype=np.float32),
        labels=np.zeros(nodes, dtype=np.int64),
        edge_index=edges,
        edge_weight=np.ones(edges.shape[1]) if weights is None else weights,
        classes=("a",),
        feature_names=tuple(f"f{i}" for i in range(np.shape(features)[1])),
        directed=directed,
    )


def parts_of(graph, owner):
    mask = np.zeros(graph.ids.size, dtype=bool)
    names = [f"org-{i:02d}" for i in range(max(owner) + 1)]
    return cut(graph, np.asarray(owner), names, (mask, mask, mask))


def whole(parts):
    """Symmetric adjacency matrix and features in the order of the parts' nodes."""
    joined = join(parts)
    order = np.argsort(joined.ids)
    ids = np.concatenate([part.ids for part in parts])
    at = order[np.searchsorted(joined.ids[order], ids)]
    A = joined.out_adjacency()
    if joined.directed:
        A = A.maximum(joined.in_adjacency())
    X = np.vstack([np.asarray(part.features, dtype=np.float64) for part in parts])
    return sp.csr_array(A)[at][:, at].toarray(), X


def hop_matrix(A, scaling):
    degrees = A.sum(axis=1)
    if scaling == "none":
        return A
    if scaling == "mean":
        return A / np.where(degrees > 0, degrees, 1.0)[:, None]
    root = 1.0 / np.sqrt(degrees + 1.0)
    return root[:, None] * (A + np.eye(len(A))) * root


def gathered(phase):
    """Sums and completeness of all organisations, one below the other."""
    found = []
    for part in phase.parts:
        results = phase.members[part.name].party.results
        found.append(results.load(results.facts()[0]))
    return np.vstack([each.sums for each in found]), np.concatenate([e.complete for e in found])


def with_program(phase, **changes):
    phase.spec = replace(phase.spec, program=replace(phase.spec.program, **changes))
    return phase


def with_policy(phase, policy):
    make = phase.member

    def member(part):
        found = make(part)
        found.party = replace(found.party, policy=policy)
        return found

    phase.member = member
    return phase


@pytest.fixture
def random_federation():
    """``random_federation(seed, ...)``: parts of a random weighted graph with isolated nodes."""

    def build(seed, *, nodes=40, clients=4, edges=70, features=7, directed=False, large=1.0):
        rng = np.random.default_rng(seed)
        ends = rng.integers(nodes - 5, size=(edges, 2))  # the last five have no edge
        ends = ends[ends[:, 0] != ends[:, 1]]
        ends = np.unique(ends if directed else np.sort(ends, axis=1), axis=0)
        X = large * rng.standard_normal((nodes, features))
        weights = rng.uniform(0.5, 2.0, len(ends))
        graph = graph_of(ends, nodes, X, directed=directed, weights=weights)
        owner = rng.integers(clients, size=nodes)
        owner[:clients] = np.arange(clients)
        return parts_of(graph, owner)

    return build
