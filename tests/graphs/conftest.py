"""Small graphs and organisation folders for the tests of the graphs room."""

import dataclasses

import numpy as np
import pytest

from fedlap_app.graphs.graph import Graph, cut
from fedlap_app.graphs.splits import draw_masks
from fedlap_app.graphs.subgraph import Subgraph


def random_graph(nodes=40, edges=90, seed=0, *, directed=False, features=3):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(nodes, size=(2, edges))
    keys = pairs[0] * nodes + pairs[1]
    values = rng.uniform(0.5, 2, size=nodes * nodes)
    return Graph(
        ids=np.array([f"v{number:03d}" for number in rng.permutation(nodes)]),
        features=rng.normal(size=(nodes, features)),
        labels=rng.integers(-1, 3, size=nodes),
        edge_index=pairs,
        edge_weight=values[keys],
        classes=("red", "green", "blue"),
        feature_names=tuple(f"f{column}" for column in range(features)),
        directed=directed,
    )


def cut_randomly(graph, parts=3, seed=0):
    rng = np.random.default_rng([seed, 1])
    assignment = rng.permutation(np.arange(graph.num_nodes) % parts)
    masks = draw_masks(graph.labels, (0.4, 0.3, 0.3), rng)
    return cut(graph, assignment, [f"org-{part}" for part in range(parts)], masks)


@pytest.fixture
def triangle():
    """Nodes a and b of one organisation, c of another; edges a-b (2.0) and b-c (0.5)."""
    return Subgraph(
        name="bank-a",
        classes=("good", "bad"),
        feature_names=("x", "y"),
        ids=np.array(["a", "b"]),
        external_ids=np.array(["c"]),
        external_owners=np.array(["bank-b"]),
        edge_index=np.array([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_weight=np.array([2.0, 2.0, 0.5, 0.5]),
        features=np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32),
        labels=np.array([0, -1]),
        train_mask=np.array([True, False]),
        val_mask=np.array([False, False]),
        test_mask=np.array([False, False]),
    )


@pytest.fixture
def change(triangle):
    """Make the triangle again with other fields."""
    return lambda **fields: dataclasses.replace(triangle, **fields)
