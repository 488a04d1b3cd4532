"""Which entries of foreign nodes a client can compute exactly from its block sums.

For every exchanged vector q a client receives B y: B are its edges to foreign nodes (own boundary
nodes times foreign neighbours), y their scaled entries. An entry of y is determined if and only if
its unit vector lies in the row space of B, and then it is so for all vectors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsmr

from fedlap_app.graphs.subgraph import Subgraph

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_DENSE = 2500
_ZERO = 1e-10
_CLOSE = 1e-6


@dataclass(frozen=True)
class Solvable:
    """What one client can solve.

    Attributes
    ----------
    name
        The client.
    foreign
        Foreign nodes that it has edges to.
    solved
        Those of them whose entries it can compute.
    """

    name: str
    foreign: int
    solved: int

    @property
    def share(self) -> float:
        """Share of the foreign entries that are solved, 0 without foreign nodes."""
        return self.solved / self.foreign if self.foreign else 0.0


def solvable_of(subgraph: Subgraph) -> Solvable:
    """What a client can solve from the sums for its own nodes."""
    found = determined(foreign_block(subgraph))
    return Solvable(subgraph.name, subgraph.num_external, int(found.sum()))


def at_most_solvable(subgraph: Subgraph) -> list[Solvable]:
    """What each partner can solve at most of this organisation's boundary, as far as it can know.

    A partner's sums may also hold entries of others, which only makes them harder to solve.
    """
    block = foreign_block(subgraph)
    found = []
    for partner in subgraph.partners:
        theirs = block[:, np.flatnonzero(subgraph.external_owners == partner)]
        touched = np.flatnonzero(np.diff(theirs.tocsr().indptr))
        solved = determined(theirs.tocsr()[touched].T.tocsr())
        found.append(Solvable(partner, touched.size, int(solved.sum())))
    return found


def foreign_block(subgraph: Subgraph) -> Any:  # noqa: ANN401 - a sparse matrix
    """Weights (n, m) of the edges from own to foreign nodes, direction ignored."""
    rows = subgraph.out_adjacency()
    if subgraph.directed:
        rows = rows.maximum(subgraph.in_adjacency())
    return rows[:, subgraph.num_nodes :].tocsr()


def total_share(found: Sequence[Solvable]) -> float:
    """Share over all clients together."""
    foreign = sum(each.foreign for each in found)
    return sum(each.solved for each in found) / foreign if foreign else 0.0


def determined(block: Any) -> Bools:  # noqa: ANN401 - a sparse matrix
    """For each column of a sparse matrix, whether its unit vector lies in the row space."""
    known = np.zeros(block.shape[1], dtype=bool)
    left = _without_absorbers(sp.csr_array(block))
    left = left[np.flatnonzero(np.diff(left.indptr))]
    if not left.nnz:
        return known
    graph = sp.block_array([[None, left], [left.T, None]])
    _, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    for members in np.split(order, np.cumsum(np.bincount(labels))[:-1]):
        inside, touched = members[members < left.shape[0]], members[members >= left.shape[0]]
        if inside.size and touched.size:
            touched = touched - left.shape[0]
            known[touched] = _in_row_space(left[inside][:, touched])
    return known


def _without_absorbers(block: sp.csr_array) -> sp.csr_array:
    """Drop rows that say nothing about any single column, until there are none.

    A row with two columns that no other row has can be met by these two whatever the others are,
    and determines neither.
    """
    while True:
        ones = sp.csr_array((np.ones(block.nnz), block.indices, block.indptr), shape=block.shape)
        counts = np.bincount(block.indices, minlength=block.shape[1])
        private = ones @ (counts == 1).astype(np.float64)
        free = private >= 2
        if not free.any():
            return block
        block = block[np.flatnonzero(~free)]


def _in_row_space(block: sp.csr_array) -> Bools:
    """The same for a connected matrix."""
    if block.shape[0] > _DENSE:
        return _by_null_vector(block)
    gram = (block @ block.T).toarray()
    sizes, vectors = np.linalg.eigh(gram)
    kept = sizes > _ZERO * sizes[-1]
    image = block.T @ (vectors[:, kept] / np.sqrt(sizes[kept]))
    lengths: Bools = np.einsum("ij,ij->i", image, image) > 1.0 - _CLOSE
    return lengths


def _by_null_vector(block: sp.csr_array) -> Bools:
    """A random vector of the null space vanishes, almost surely, just where entries are known."""
    drawn = np.random.default_rng(0).standard_normal(block.shape[1])
    inside = lsmr(block, block @ drawn, atol=1e-14, btol=1e-14, conlim=0.0, maxiter=20_000)[0]
    vanished: Bools = np.abs(drawn - inside) < _CLOSE
    return vanished
