"""What two organisations share: the edges between them, and the nodes at their ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.sums.edgecheck import EdgeHashes, EdgeList

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Border:
    """One organisation's view of what it shares with a partner.

    Both sides list the shared nodes in the order of their ids, so that slots travel without ids.

    Attributes
    ----------
    partner
        Name of the partner.
    own
        Own nodes with an edge to the partner.
    foreign
        Positions of the partner's nodes among the external nodes.
    edges, outgoing, weights
        (2, e) positions of the ends in `own` and in `foreign`, whether the own end is the source,
        and weights; an undirected edge is listed once.
    """

    partner: str
    own: Ints
    foreign: Ints
    edges: Ints
    outgoing: Bools
    weights: NDArray[np.float64]

    def digest(self, key: bytes, subgraph: Subgraph) -> bytes:
        """Keyed digest of the edges; the partner gets the same."""
        own, foreign = subgraph.ids[self.own], subgraph.external_ids[self.foreign]
        against = ~self.outgoing if subgraph.directed else np.zeros_like(self.outgoing)
        listed = EdgeList(own, foreign, self.edges, against, self.weights)
        if self.partner < subgraph.name:
            turned = ~against if subgraph.directed else against
            listed = EdgeList(foreign, own, self.edges[::-1], turned, self.weights)
        return listed.digest(key)

    def hashes(self, key: bytes, subgraph: Subgraph) -> EdgeHashes:
        """Keyed hashes of the single edges."""
        sources, targets = self.ends(subgraph)
        weights = self.weights.tolist()
        return EdgeHashes(key, sources, targets, weights, directed=subgraph.directed)

    def ends(self, subgraph: Subgraph) -> tuple[list[str], list[str]]:
        """Ids of the sources and of the targets."""
        own = subgraph.ids[self.own][self.edges[0]]
        foreign = subgraph.external_ids[self.foreign][self.edges[1]]
        sources = np.where(self.outgoing, own, foreign)
        return sources.tolist(), np.where(self.outgoing, foreign, own).tolist()


def no_border(partner: str) -> Border:
    """The border with a member that shares no edge."""
    none = np.zeros(0, np.int64)
    return Border(partner, none, none, np.zeros((2, 0), np.int64), none > 0, np.zeros(0))


def borders_of(subgraph: Subgraph) -> dict[str, Border]:
    """The border with every partner."""
    partners, owner = _owners(subgraph)
    n = subgraph.num_nodes
    index, weight = subgraph.inter_edges
    outgoing = index[0] < n
    if not subgraph.directed:  # every edge is there in both directions
        index, weight, outgoing = index[:, outgoing], weight[outgoing], outgoing[outgoing]
    own_end = np.where(outgoing, index[0], index[1])
    foreign_end = np.where(outgoing, index[1], index[0]) - n
    edge_owner = owner[foreign_end].astype(np.int64)
    # Nodes of all borders, one border after the other and in each one by id.
    order = np.argsort(subgraph.ids, kind="stable")
    place = edge_owner * n + _inverse(order)[own_end]
    shared = np.zeros(len(partners) * n, dtype=bool)
    shared[place] = True
    own = order[np.flatnonzero(shared) % n]
    foreign = np.lexsort((_inverse(np.argsort(subgraph.external_ids, kind="stable")), owner))
    ends = np.stack([np.cumsum(shared)[place] - 1, _inverse(foreign)[foreign_end]])
    by_owner = np.argsort(owner[foreign_end], kind="stable")
    starts = [
        np.cumsum([0, *np.bincount(codes, minlength=len(partners))])
        for codes in (np.flatnonzero(shared) // n, owner, edge_owner)
    ]
    borders = {}
    for code, name in enumerate(partners):
        mine, theirs, edges = (slice(each[code], each[code + 1]) for each in starts)
        at = by_owner[edges]
        borders[name] = Border(
            partner=name,
            own=own[mine],
            foreign=foreign[theirs],
            edges=ends[:, at] - np.array([[mine.start], [theirs.start]]),
            outgoing=outgoing[at],
            weights=weight[at],
        )
    return borders


def boundary_of(subgraph: Subgraph) -> NDArray[np.bool_]:
    """Own nodes that have a foreign neighbour."""
    boundary = np.zeros(subgraph.num_nodes, dtype=bool)
    ends = subgraph.inter_edges[0]
    boundary[ends[ends < subgraph.num_nodes]] = True
    return boundary


def _owners(subgraph: Subgraph) -> tuple[list[str], NDArray[np.uint16]]:
    """Names of the partners, and for each external node which of them holds it."""
    owners = subgraph.external_owners.tolist()
    partners = sorted(set(owners))
    code = {name: number for number, name in enumerate(partners)}
    # Numbers of 16 bits are sorted several times faster than wider ones.
    return partners, np.array([code[name] for name in owners], dtype=np.uint16)


def _inverse(order: Ints) -> Ints:
    """Where each number stands in a permutation."""
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return places
