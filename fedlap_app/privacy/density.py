"""How dense a graph is: what an attacker of the paper knows before the first message."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedlap_app.errors import DataError
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.subgraph import Subgraph


@dataclass(frozen=True)
class Density:
    """Counts of the whole graph, self loops left out.

    Attributes
    ----------
    nodes
        Nodes, n.
    edges
        Pairs of nodes with an edge in any direction, E.
    entries
        Entries of the adjacency matrix as it is used: twice the edges unless edges are directed.
    """

    nodes: int
    edges: int
    entries: int

    @property
    def true_p(self) -> float:
        """Share of the pairs of nodes that are connected: p = 2 E / (n (n - 1))."""
        return 2.0 * self.edges / (self.nodes * (self.nodes - 1))

    @property
    def paper_p(self) -> float:
        """The paper's p, 2 entries / n^2, which counts every edge twice (Fig. tpr_precision).

        From the directed entries of Chameleon, .0139, and with both directions of Photo and
        PubMed, .0081 and .00046, as in the caption.
        """
        return 2.0 * self.entries / self.nodes**2


def density_of(subgraphs: Sequence[Subgraph]) -> Density:
    """Counts over all parts of a federation."""
    whole = join(subgraphs)
    sources, targets = whole.edge_index
    proper = sources != targets
    low = np.minimum(sources, targets)[proper].astype(np.int64)
    high = np.maximum(sources, targets)[proper].astype(np.int64)
    edges = int(np.unique(low * whole.num_nodes + high).size)
    if not edges:
        raise DataError("The graph has no edges, so there are none to find: check the edge tables.")
    return Density(whole.num_nodes, edges, int(proper.sum()))


def own_density(subgraph: Subgraph) -> float:
    """Share of the pairs of an organisation's own nodes that are connected: it alone knows it.

    Where no pair or every pair is connected it is (E + 1) / (pairs + 2), by the rule of
    succession: the test needs a density between 0 and 1.
    """
    (sources, targets), _ = subgraph.intra_edges
    proper = sources != targets
    low = np.minimum(sources, targets)[proper].astype(np.int64)
    high = np.maximum(sources, targets)[proper].astype(np.int64)
    edges = int(np.unique(low * subgraph.num_nodes + high).size)
    pairs = subgraph.num_nodes * (subgraph.num_nodes - 1) // 2
    return edges / pairs if 0 < edges < pairs else (edges + 1) / (pairs + 2)
