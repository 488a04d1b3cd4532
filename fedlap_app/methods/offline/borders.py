"""What two organisations share: the edges between them, and the nodes at their ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.secure.edgecheck import EdgeHashes, EdgeList

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
    index, weight = subgraph.inter_edges
    outgoing = index[0] < subgraph.num_nodes
    own_end = np.where(outgoing, index[0], index[1])
    foreign_end = np.where(outgoing, index[1], index[0]) - subgraph.num_nodes
    edge_owner = owner[foreign_end]
    # Nodes of all borders, one border after the other and in each one by id.
    order = np.argsort(subgraph.ids, kind="stable")
    places, own_at = np.unique(
        edge_owner * order.size + _inverse(order)[own_end], return_inverse=True
    )
    own, own_starts = order[places % order.size], _starts(places // order.size, len(partners))
    foreign = np.lexsort((_inverse(np.argsort(subgraph.external_ids, kind="stable")), owner))
    foreign_starts = _starts(owner[foreign], len(partners))
    ends = np.stack([own_at, _inverse(foreign)[foreign_end]])
    listed = np.flatnonzero(outgoing | subgraph.directed)
    listed = listed[np.argsort(edge_owner[listed], kind="stable")]
    edge_starts = _starts(edge_owner[listed], len(partners))
    borders = {}
    for code, name in enumerate(partners):
        at = listed[edge_starts[code] : edge_starts[code + 1]]
        starts = np.array([[own_starts[code]], [foreign_starts[code]]])
        borders[name] = Border(
            partner=name,
            own=own[own_starts[code] : own_starts[code + 1]],
            foreign=foreign[foreign_starts[code] : foreign_starts[code + 1]],
            edges=ends[:, at] - starts,
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


def _owners(subgraph: Subgraph) -> tuple[list[str], Ints]:
    """Names of the partners, and for each external node which of them holds it."""
    owners = subgraph.external_owners.tolist()
    partners = sorted(set(owners))
    code = {name: number for number, name in enumerate(partners)}
    return partners, np.array([code[name] for name in owners], dtype=np.int64)


def _inverse(order: Ints) -> Ints:
    """Where each number stands in a permutation."""
    places = np.empty_like(order)
    places[order] = np.arange(order.size)
    return places


def _starts(codes: Ints, count: int) -> Ints:
    """Where each of `count` codes begins in a sorted list, and its end."""
    return np.searchsorted(codes, np.arange(count + 1))
