"""The three ways a node averages its neighbours, as matrices with targets as rows."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

if TYPE_CHECKING:
    from fedlap_app.graphs.subgraph import Subgraph

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Links:
    """Who hears whom among the internal nodes: ``own + back @ relay``.

    Attributes
    ----------
    own : csr_array
        (n, n) weights: entry (target, source).
    back : csr_array | None
        (n, m) weights of the edges from external nodes.
    relay : csr_array | None
        (m, n): what an external node would say if it knew its internal neighbours only, namely
        their weighted mean. Nothing but the organisation's own edges is needed for it.
    """

    own: sp.csr_array
    back: sp.csr_array | None = None
    relay: sp.csr_array | None = None

    @classmethod
    def of(cls, subgraph: "Subgraph", *, relay: bool) -> Self:
        """Links of a subgraph, over external nodes as well if these relay."""
        size = subgraph.num_nodes
        into = subgraph.in_adjacency()
        own = sp.csr_array(into[:, :size])
        if not relay:
            return cls(own)
        heard = sp.csr_array(subgraph.out_adjacency()[:, size:].T)
        return cls(own, sp.csr_array(into[:, size:]), _left(_power(_sums(heard), -1.0), heard))

    def degrees(self) -> Floats:
        """Weight of all that a node hears."""
        degrees = _sums(self.own)
        if self.back is not None and self.relay is not None:
            degrees = degrees + self.back @ _sums(self.relay)
        return degrees

    def with_loops(self) -> "Links":
        """The same with every node hearing itself."""
        return replace(self, own=sp.csr_array(self.own + sp.eye_array(self.own.shape[0])))

    def scaled(self, targets: Floats, sources: Floats | None = None) -> "Links":
        """The same with factors for targets and sources."""
        own = _left(targets, self.own)
        back = None if self.back is None else _left(targets, self.back)
        relay = self.relay
        if sources is not None:
            own = own @ sp.diags_array(sources)
            relay = None if relay is None else relay @ sp.diags_array(sources)
        return Links(own, back, relay)


def neighbour_mean(links: Links) -> Links:
    """D^-1 A: the weighted mean of the in-neighbours, zero without any (GraphSAGE)."""
    return links.scaled(_power(links.degrees(), -1.0))


def random_walk(links: Links) -> Links:
    """D^-1 (A + I): the weighted mean of the in-neighbours and the node itself."""
    looped = links.with_loops()
    return looped.scaled(_power(looped.degrees(), -1.0))


def symmetric(links: Links) -> Links:
    """D^-1/2 (A + I) D^-1/2 with in-degrees (GCN)."""
    looped = links.with_loops()
    root = _power(looped.degrees(), -0.5)
    return looped.scaled(root, root)


def _sums(matrix: sp.csr_array) -> Floats:
    sums: Floats = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    return sums


def _left(factors: Floats, matrix: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(factors) @ matrix)


def _power(degrees: Floats, exponent: float) -> Floats:
    """Raise to a negative power; a node without neighbours gets 0."""
    return np.power(degrees, exponent, where=degrees > 0, out=np.zeros_like(degrees))
