"""Small random subgraphs, and deterministic torch for every test of this folder."""

import numpy as np
import pytest
import scipy.sparse

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.models.determinism import one_thread


@pytest.fixture(autouse=True)
def deterministic():
    with one_thread():
        yield


@pytest.fixture
def make_subgraph():
    return random_subgraph


def random_subgraph(
    n=30,
    d=6,
    classes=3,
    density=0.1,
    *,
    seed=0,
    directed=False,
    weighted=True,
    sparse=False,
    **kept,
):
    """A graph with isolated nodes and nodes without a label; ``kept`` replaces fields."""
    rng = np.random.default_rng(seed)
    adjacency = np.triu(rng.random((n, n)) < density, 1).astype(float)
    adjacency *= rng.uniform(0.5, 2.0, (n, n)) if weighted else 1.0
    if directed:
        adjacency = rng.permuted(adjacency, axis=0) * (1 - np.eye(n))
    else:
        adjacency += adjacency.T
    source, target = np.nonzero(adjacency)
    split = rng.integers(0, 4, n)
    labels = rng.integers(0, classes, n)
    labels[split == 3] = -1
    features = rng.normal(size=(n, d)).astype(np.float32) * (rng.random((n, d)) < 0.3)
    fields = {
        "name": "org",
        "classes": tuple(f"class-{i}" for i in range(classes)),
        "feature_names": tuple(f"f{i}" for i in range(d)),
        "ids": np.array([f"v{i}" for i in range(n)]),
        "external_ids": np.array([], dtype=str),
        "external_owners": np.array([], dtype=str),
        "edge_index": np.stack([source, target]),
        "edge_weight": adjacency[source, target],
        "features": scipy.sparse.csr_array(features) if sparse else features,
        "labels": labels,
        "train_mask": split == 0,
        "val_mask": split == 1,
        "test_mask": split == 2,
        "directed": directed,
    }
    return Subgraph(**(fields | kept))
