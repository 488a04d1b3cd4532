"""Clean lists of edges: no self loops, no duplicates, both directions unless directed."""

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs.arrays import Floats, Ints, Strings


def edge_keys(index: Ints, size: int) -> Ints:
    """One number an edge, ordered by source and then target."""
    keys: Ints = index[0] * np.int64(size) + index[1]
    return keys


def sort_edges(index: Ints, weight: Floats, size: int) -> tuple[Ints, Floats]:
    """Edges ordered by source and then target."""
    keys = edge_keys(index, size)
    if np.all(keys[:-1] <= keys[1:]):
        return index, weight
    order = np.argsort(keys, kind="stable")
    return index[:, order], weight[order]


def simplify_edges(
    index: Ints, weight: Floats, ids: Strings, *, directed: bool
) -> tuple[Ints, Floats]:
    """Sorted simple edges from a raw list.

    Self loops and exact duplicates are dropped. Unless ``directed`` every edge ends up in both
    directions with one weight, the larger one when the two directions were listed differently.

    Parameters
    ----------
    index : (2, E) positions in ``ids``, source first.
    weight : (E,) weights.
    ids : names of the nodes, for the error.
    directed : keep the direction.
    """
    size = max(len(ids), 1)
    proper = index[0] != index[1]
    index, weight = sort_edges(index[:, proper], weight[proper], size)
    keys = edge_keys(index, size)
    repeated = np.flatnonzero(keys[1:] == keys[:-1]) + 1
    clash = repeated[weight[repeated] != weight[repeated - 1]]
    if clash.size:
        at = clash[0]
        source, target = (str(ids[end]) for end in index[:, at])
        raise DataError(
            f"The edge from {source!r} to {target!r} is listed with the weights "
            f"{weight[at - 1]:g} and {weight[at]:g}: keep one of them."
        )
    kept = np.ones(keys.size, dtype=bool)
    kept[repeated] = False
    index, weight = index[:, kept], weight[kept]
    return (index, weight) if directed else _symmetrise(index, weight, size)


def _symmetrise(index: Ints, weight: Floats, size: int) -> tuple[Ints, Floats]:
    both = np.concatenate([index, index[::-1]], axis=1)
    both, weights = sort_edges(both, np.concatenate([weight, weight]), size)
    keys = edge_keys(both, size)
    first = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if keys.size else keys
    if not first.size:
        return both, weights
    return both[:, first], np.maximum.reduceat(weights, first)
