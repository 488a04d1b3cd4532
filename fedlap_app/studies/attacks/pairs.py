"""Pairs of nodes to ask about: all edges, and all other pairs or a random part of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MOST = 500_000


def edge_pairs(adjacency: Any) -> tuple[Ints, Ints]:  # noqa: ANN401 - a sparse matrix
    """Source and target of all edges, self loops left out."""
    matrix = adjacency.tocoo()
    sources, targets = (np.asarray(each, dtype=np.int64) for each in matrix.coords)
    proper = (sources != targets) & (matrix.data != 0)
    return sources[proper], targets[proper]


def other_pairs(
    adjacency: Any,  # noqa: ANN401 - a sparse matrix
    rng: np.random.Generator,
    most: int = MOST,
) -> tuple[Ints, Ints]:
    """Source and target of pairs without an edge: all of them, or `most` at random."""
    nodes = adjacency.shape[0]
    sources, targets = edge_pairs(adjacency)
    taken = np.concatenate([sources * nodes + targets, np.arange(nodes) * (nodes + 1)])
    if nodes * nodes <= most:
        free = np.ones(nodes * nodes, dtype=bool)
        free[taken] = False
        left = np.flatnonzero(free)
    else:
        drawn = rng.integers(nodes * nodes, size=most)
        left = drawn[~np.isin(drawn, taken)]
    return left // nodes, left % nodes
