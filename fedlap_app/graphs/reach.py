"""Weights of walks of some steps over the whole graph, of which every node keeps its largest."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy.sparse as sp

from fedlap_app.graphs.graph import join
from fedlap_app.graphs.subgraph import Subgraph

_SAME = 2.0**-20


def walks(adjacency: sp.csr_array, steps: int, kept: int) -> sp.csr_array:
    """(D^-1 (A + I))^steps, cut to the `kept` largest entries of each row after every step.

    A row needs only those of its neighbours, so organisations can compute it by handing rows over.

    Parameters
    ----------
    adjacency
        (n, n) weights, targets as rows.
    steps, kept
        Length of the walks, and entries of a row; 0: all.
    """
    looped = sp.csr_array(adjacency + sp.eye_array(adjacency.shape[0]))
    step = sp.csr_array(sp.diags_array(1.0 / np.asarray(looped.sum(axis=1)).ravel()) @ looped)
    found = sp.csr_array(sp.eye_array(adjacency.shape[0]))
    for _ in range(steps):
        found = largest(sp.csr_array(step @ found), kept)
    return found


def largest(matrix: sp.csr_array, kept: int) -> sp.csr_array:
    """The largest entries of each row; of equal ones those further left.

    Sums that were sealed are a little off: entries within `_SAME` count as equal, or as nothing.
    """
    matrix.data[matrix.data < _SAME] = 0.0
    matrix.eliminate_zeros()
    if not kept:
        return matrix
    matrix.sort_indices()
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -np.rint(matrix.data / _SAME), rows))
    rank = np.arange(matrix.nnz) - matrix.indptr[rows[order]]
    chosen = order[rank < kept]
    entries = matrix.data[chosen], (rows[chosen], matrix.indices[chosen])
    return sp.csr_array(entries, shape=matrix.shape)


def reach_of(part: Subgraph, parts: Sequence[Subgraph], steps: int, kept: int) -> sp.csr_array:
    """The rows of a part's own nodes, (n_i, n); columns in the order of the parts."""
    start = 0
    for other in parts:
        if other.name == part.name:
            break
        start += other.num_nodes
    whole = _Whole(tuple(parts))
    return sp.csr_array(_walks_of(whole, steps, kept)[start : start + part.num_nodes])


@dataclass(frozen=True, eq=False)
class _Whole:
    """All parts, told apart by what they hold: each organisation of a process reads its own."""

    parts: tuple[Subgraph, ...]

    @cached_property
    def _key(self) -> tuple[str, ...]:
        return tuple(part.fingerprint() for part in self.parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Whole) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=1)
def _walks_of(whole: _Whole, steps: int, kept: int) -> sp.csr_array:
    return walks(join(whole.parts).in_adjacency(), steps, kept)
