"""Attacks (b) and (c): curious clients that know only their own rows, their sums and H.

They solve their sums for the entries of foreign neighbours (the solution of least norm, exact where
the sums determine it), get the neighbour sums of these nodes from L Q = Q H, take out what their
own nodes add, and compare what is left with the entries of other foreign nodes, as the test of the
theorem does. Without any message they could count common own neighbours: that is the baseline.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import lsmr

from fedlap_app.studies.attacks.pairs import MOST, edge_pairs, other_pairs
from fedlap_app.studies.attacks.scores import Scores
from fedlap_app.studies.attacks.views import Coalition

Array = NDArray[np.float64]

_DENSE = 3000
_RIDGE = 1e-9
_CHUNK = 50_000


def estimate_entries(coalition: Coalition) -> Array:
    """(m, M) scaled entries of the foreign nodes: the least-norm solution of the sums."""
    block, sums = coalition.block, coalition.sums
    used = np.flatnonzero(np.diff(block.indptr))
    block, sums = block[used], sums[used]
    if used.size > _DENSE:
        columns = [lsmr(block, column, atol=1e-8, btol=1e-8)[0] for column in sums.T]
        return np.column_stack(columns)
    gram = (block @ block.T).toarray()
    gram[np.diag_indices_from(gram)] += _RIDGE * max(1.0, float(np.diag(gram).max(initial=0.0)))
    return np.asarray(block.T @ cho_solve(cho_factor(gram), sums))


def attack_curious(
    coalition: Coalition,
    adjacency: Any,  # noqa: ANN401 - a sparse matrix
    rng: np.random.Generator,
    most: int = MOST,
) -> tuple[Scores, Scores]:
    """Scores on pairs of foreign nodes with the messages, and without them (the baseline).

    Parameters
    ----------
    coalition
        What the attackers know.
    adjacency
        (m, m) the true edges among the foreign nodes, to score the attack.
    rng
        Chooses pairs without an edge where there are too many.
    most
        Most of those pairs.
    """
    edges, others = edge_pairs(adjacency), other_pairs(adjacency, rng, most)
    sources, targets = (np.concatenate(each) for each in zip(edges, others, strict=True))
    once = sources < targets
    real = (np.arange(sources.size) < edges[0].size)[once]
    sources, targets = sources[once], targets[once]
    entries = estimate_entries(coalition)
    left = coalition.view.neighbour_sums(entries) - coalition.given
    lengths = np.einsum("ij,ij->i", entries, entries)
    found = np.empty(sources.size)
    for start in range(0, sources.size, _CHUNK):
        u, v = sources[start : start + _CHUNK], targets[start : start + _CHUNK]
        forth = np.einsum("ij,ij->i", left[u], entries[v])
        back = np.einsum("ij,ij->i", left[v], entries[u])
        found[start : start + _CHUNK] = forth + back - (lengths[u] + lengths[v]) / 2.0
    common = (coalition.block.T @ coalition.block).tocsr()
    shared = np.asarray(common[sources, targets]).ravel()
    return Scores(found, real, sources), Scores(shared.astype(np.float64), real, sources)
