"""One client's part of sums over neighbours: A X with one of a few scalings, hop by hop.

Which sums are left out protects single rows. A node whose foreign neighbours are fewer than
`least` gets no foreign sum at all (it is `unheard`): with one, the sum would be that neighbour's
row. In the second hop the rows that are summed are themselves sums; one that is made of fewer than
`least` rows foreign to the recipient, but not of none, is left out of what that recipient gets.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.subgraph import Subgraph

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

SCALINGS = ("none", "mean", "sym")


def unheard(subgraph: Subgraph, least: int) -> Bools:
    """Own nodes with foreign neighbours, but fewer than `least`."""
    count = np.diff(subgraph.symmetric_adjacency()[:, subgraph.num_nodes :].tocsr().indptr)
    return np.asarray((count > 0) & (count < least))


def own_ends(subgraph: Subgraph) -> NDArray[np.int64]:
    """(m,) own neighbours of each external node."""
    foreign = subgraph.symmetric_adjacency()[:, subgraph.num_nodes :]
    return np.bincount(foreign.tocsr().indices, minlength=subgraph.num_external)


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Sums over neighbours: `none` is A X, `mean` D^-1 A X, `sym` has loops, D the degrees.

    Attributes
    ----------
    subgraph
        What the client holds.
    scaling
        One of `SCALINGS`; sym: (D + 1)^-1/2 (A + I) (D + 1)^-1/2.
    least
        Rows without which no sum leaves.
    heard
        (m,) external nodes for which a contribution is wanted, as their owners say.
    """

    subgraph: Subgraph
    scaling: str
    least: int
    heard: Bools

    def __post_init__(self) -> None:
        if self.scaling not in SCALINGS:
            raise ConfigError(
                f"The scaling is '{self.scaling}'; choose one of {', '.join(SCALINGS)}."
            )

    @cached_property
    def unheard(self) -> Bools:
        """Own nodes that get no foreign sum although they have foreign neighbours."""
        return unheard(self.subgraph, self.least)

    @cached_property
    def _rows(self) -> Any:  # noqa: ANN401 - a sparse matrix
        return self.subgraph.symmetric_adjacency()

    @cached_property
    def _own(self) -> Any:  # noqa: ANN401
        n = self.subgraph.num_nodes
        own = self._rows[:, :n].tocsr()
        return (own + sp.eye_array(n)).tocsr() if self.scaling == "sym" else own

    @cached_property
    def _foreign(self) -> Any:  # noqa: ANN401
        return self._rows[:, self.subgraph.num_nodes :].tocsr()

    @cached_property
    def _factors(self) -> tuple[Array, Array]:
        """What rows are multiplied with before and after they are summed."""
        degrees = self.subgraph.degrees()
        ones = np.ones_like(degrees)
        if self.scaling == "none":
            return ones, ones
        if self.scaling == "mean":
            return ones, np.divide(1.0, degrees, out=np.zeros_like(degrees), where=degrees > 0.0)
        root = 1.0 / np.sqrt(degrees + 1.0)
        return root, root

    @cached_property
    def _owing(self) -> tuple[Any, Any, Array]:
        """(m, n) weights of what is owed in the first hop and later, and where rows are missing."""
        owed = sp.diags_array(self.heard.astype(np.float64)) @ self._foreign.T
        first = sp.coo_array(owed @ sp.diags_array(self._factors[0]))
        external, node = first.coords
        kept = ~self._exposing[node, self._owner[external]]
        shape = first.shape
        later = sp.csr_array((first.data[kept], (external[kept], node[kept])), shape=shape)
        missing = np.zeros(shape[0])
        missing[external[~kept & (first.data != 0.0)]] = 1.0
        return first.tocsr(), later, missing

    @cached_property
    def _owner(self) -> NDArray[np.int64]:
        """Place of each external node's owner among the partners."""
        return np.unique(self.subgraph.external_owners, return_inverse=True)[1]

    @cached_property
    def _exposing(self) -> Bools:
        """(n, partners) own nodes whose sum would show too few rows to a partner."""
        m = self.subgraph.num_external
        holders = sp.csr_array(
            (np.ones(m), (np.arange(m), self._owner)), shape=(m, len(self.subgraph.partners))
        )
        theirs = ((self._foreign != 0).astype(np.float64) @ holders).toarray()
        own = np.diff(self._own.indptr)[:, None]
        others = np.where(self.unheard[:, None], 0.0, theirs.sum(axis=1, keepdims=True) - theirs)
        count = own + others
        return np.asarray((count > 0) & (count < self.least))

    def columns(self, features: int, hop: int) -> int:
        """Columns of a hop: in the second one more, which marks the sums that lack rows."""
        return features + (hop > 0)

    def owed(self, X: Array, hop: int) -> Array:
        """What the owners of the external nodes get of some columns of the hop's rows."""
        return np.asarray(self._owing[min(hop, 1)] @ X)

    def marks(self) -> Array:
        """(m, 1) a one where rows are left out of the second hop."""
        return np.asarray(self._owing[2][:, None])

    def combine(self, X: Array, received: Array) -> Array:
        """The own rows of the product; what is received for unheard nodes is noise."""
        front, back = self._factors
        foreign = np.where(self.unheard[:, None], 0.0, received)
        summed = np.asarray(self._own @ (front[:, None] * X)) + foreign
        return np.asarray(back[:, None] * summed)

    def complete(self, hops: int, marks: Array) -> Bools:
        """Own nodes whose sums lack nothing.

        Parameters
        ----------
        hops
            Hops that were gone, 1 or 2.
        marks
            (n,) summed marks of the second hop.
        """
        if hops == 1:
            return ~self.unheard
        lacking = np.concatenate([self.unheard, ~self.heard]).astype(np.float64)
        # An unheard foreign node is told from others by its owner, which wants nothing for it.
        near = np.asarray(self._rows @ lacking) > 0.0
        return ~(self.unheard | near | (np.where(self.unheard, 0.0, marks) > 0.5))
