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
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import lsmr

from fedlap_app.graphs.subgraph import Subgraph

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

_DENSE = 6000
_RIDGE = 1e-12
_PASSES = 300
_SETTLED = 1e-10
_ZERO = 1e-6


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
    return subgraph.symmetric_adjacency()[:, subgraph.num_nodes :].tocsr()


def total_share(found: Sequence[Solvable]) -> float:
    """Share over all clients together."""
    foreign = sum(each.foreign for each in found)
    return sum(each.solved for each in found) / foreign if foreign else 0.0


def determined(block: Any) -> Bools:  # noqa: ANN401 - a sparse matrix
    """For each column of a sparse matrix, whether its unit vector lies in the row space.

    A random vector of the null space vanishes, almost surely, in just these columns. Rows that
    have a column for themselves are set aside first: that column can be chosen so that the row
    vanishes, whatever the others are. What is left is small and solved by linear algebra.
    """
    block = sp.csr_array(block)
    if not block.nnz:
        return np.zeros(block.shape[1], dtype=bool)
    draw = np.random.default_rng(0).standard_normal((block.shape[1], 2))
    layers, core = _peel(block)
    vector = draw.copy()
    columns = np.unique(core.indices)
    if columns.size:
        vector[columns] = _null_part(core[:, columns], draw[columns])
    for rows, private in reversed(layers):
        # A column per row is left to choose; the others, drawn before, are free.
        vector[private] = 0.0
        weights = np.asarray(rows[np.arange(private.size), private]).reshape(-1, 1)
        vector[private] = -(rows @ vector) / weights
    known: Bools = np.abs(vector).max(axis=1) < _ZERO
    return known


def _peel(block: sp.csr_array) -> tuple[list[tuple[sp.csr_array, Ints]], sp.csr_array]:
    """Layers of rows with a column for themselves, each with that column, and the rows left."""
    layers: list[tuple[sp.csr_array, Ints]] = []
    while True:
        block = block[np.flatnonzero(np.diff(block.indptr))]
        counts = np.bincount(block.indices, minlength=block.shape[1])
        row_of = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
        alone = np.flatnonzero(counts[block.indices] == 1)
        rows, first = np.unique(row_of[alone], return_index=True)
        if not rows.size:
            return layers, block
        layers.append((block[rows], block.indices[alone[first]].astype(np.int64)))
        block = block[np.setdiff1d(np.arange(block.shape[0]), rows)]


def _null_part(block: sp.csr_array, vectors: Array) -> Array:
    """Projection of vectors on the null space of a matrix."""
    if block.shape[0] > _DENSE:
        parts = [
            lsmr(block, block @ each, atol=1e-15, btol=1e-15, conlim=0.0, maxiter=20_000)[0]
            for each in vectors.T
        ]
        return np.asarray(vectors - np.column_stack(parts))
    gram = (block @ block.T).toarray()
    gram[np.diag_indices_from(gram)] += _RIDGE * gram.sum(axis=1).max()
    factor = cho_factor(gram, overwrite_a=True)
    for _ in range(_PASSES):
        # Each pass takes out what the ridge left of the last one.
        inside = block.T @ cho_solve(factor, block @ vectors)
        vectors = vectors - inside
        if np.abs(inside).max() < _SETTLED:
            break
    return np.asarray(vectors)
