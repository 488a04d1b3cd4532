"""What two organisations share: the edges between them, and the nodes at their ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.secure.edgecheck import EdgeHashes

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Border:
    """One organisation's view of what it shares with a partner.

    Both sides list the shared nodes in the order of their ids, so that slots travel without ids.

    Attributes
    ----------
    own
        Own nodes with an edge to the partner.
    foreign
        Positions of the partner's nodes among the external nodes.
    edges, weights
        (2, e) ends as positions among own and external nodes; an undirected edge is listed once.
    """

    own: Ints
    foreign: Ints
    edges: Ints
    weights: NDArray[np.float64]

    def hashes(self, key: bytes, subgraph: Subgraph) -> EdgeHashes:
        """Keyed hashes of the edges."""
        sources, targets = self.ends(subgraph)
        weights = self.weights.tolist()
        return EdgeHashes(key, sources, targets, weights, directed=subgraph.directed)

    def ends(self, subgraph: Subgraph) -> tuple[list[str], list[str]]:
        """Ids of the sources and of the targets."""
        everyone = np.concatenate([subgraph.ids, subgraph.external_ids])
        return everyone[self.edges[0]].tolist(), everyone[self.edges[1]].tolist()


NO_BORDER = Border(
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((2, 0), np.int64), np.zeros(0)
)


def borders_of(subgraph: Subgraph) -> dict[str, Border]:
    """The border with every partner."""
    n = subgraph.num_nodes
    index, weight = subgraph.inter_edges
    outgoing = index[0] < n
    foreign = np.where(outgoing, index[1], index[0]) - n
    names, owner = np.unique(subgraph.external_owners, return_inverse=True)
    listed = np.full(foreign.size, True) if subgraph.directed else outgoing
    borders = {}
    for code, name in enumerate(names.tolist()):
        at = np.flatnonzero(owner[foreign] == code)
        chosen = at[listed[at]]
        borders[name] = Border(
            own=_by_id(np.unique(index[:, at][index[:, at] < n]), subgraph.ids),
            foreign=_by_id(np.flatnonzero(owner == code), subgraph.external_ids),
            edges=index[:, chosen],
            weights=weight[chosen],
        )
    return borders


def boundary_of(subgraph: Subgraph) -> NDArray[np.bool_]:
    """Own nodes that have a foreign neighbour."""
    boundary = np.zeros(subgraph.num_nodes, dtype=bool)
    ends = subgraph.inter_edges[0]
    boundary[ends[ends < subgraph.num_nodes]] = True
    return boundary


def _by_id(positions: Ints, ids: NDArray[np.str_]) -> Ints:
    """Positions in the order of the ids at them."""
    return positions[np.argsort(ids[positions], kind="stable")]
