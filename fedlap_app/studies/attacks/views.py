"""What a client holds at the end of an offline phase, and what several hold together.

The columns of Q and of Z = L Q at its own nodes follow from its start block and the sums it was
sent, step by step; so the sums that belong to the columns of Q follow from Q and Z. H = Q'Z is a
small sum that all clients get.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.solvable import foreign_block
from fedlap_app.spectral.operators.base import SplitOperator
from fedlap_app.spectral.totals import Totals

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClientView:
    """What one client knows.

    Attributes
    ----------
    subgraph
        Its part of the graph.
    kind, loops, shift
        Operator, weight of its self loops, and t of the regularised one.
    operator
        Its part of the operator.
    totals
        Totals of the graph.
    Q, Z
        (n_i, M) its rows of the basis and of the operator times it; Z is empty where the solver
        does not keep it.
    H
        (M, M) symmetric part of Q'Z over all clients.
    spikes
        (M,) sums over all clients that a term ``- v v'`` of the operator needs.
    """

    subgraph: Subgraph
    kind: str
    loops: float
    shift: float
    operator: SplitOperator
    totals: Totals
    Q: Array
    Z: Array
    H: Array
    spikes: Array

    @property
    def scaled(self) -> Array:
        """Rows of Q as edges multiply them, but for a factor that is the same for all clients."""
        return np.abs(self.operator.back)[:, None] * self.Q

    @cached_property
    def received(self) -> Array:
        """(n_i, M) the block sums for the columns of Q: sums over foreign neighbours."""
        if self.Z.shape != self.Q.shape:
            raise ConfigError(
                "The solver keeps no images of its vectors, from which this attack reads the sums: "
                "try --solver block-lanczos"
            )
        rest = self.Z - np.asarray(self.operator.local @ self.Q)
        if self.operator.spike is not None:
            rest = rest + self.operator.spike[:, None] * self.spikes
        back = self.operator.back[:, None]
        sums: Array = np.divide(rest, back, out=np.zeros_like(rest), where=back != 0.0)
        return sums

    def neighbour_sums(self, entries: Array) -> Array:
        """Sums over all neighbours of nodes with these scaled entries, because L Q = Q H.

        The degrees of foreign nodes are unknown: the mean degree stands for them.
        """
        M, unit, degree = self.H.shape[0], self.operator.unit, self.totals.mean_degree
        if self.kind == "adjacency":
            return entries @ (unit * self.H)
        if self.kind == "laplacian":
            return entries @ (degree * np.eye(M) - unit * self.H)
        if self.kind == "regularised":
            return entries @ ((degree + self.shift) * (np.eye(M) - self.H)) - self._offset()
        loops = self.loops
        return entries @ ((degree + loops) * (np.eye(M) - self.H) - loops * np.eye(M))

    def _offset(self) -> Array:
        """Share of the term ``- v v'`` in a neighbour sum; the same for every node."""
        if self.operator.spike is None:
            return np.zeros_like(self.spikes)
        back = np.abs(self.operator.back)
        at = int(np.argmax(back))
        return np.asarray(self.operator.spike[at] / back[at] * self.spikes)


@dataclass(frozen=True, eq=False)
class Coalition:
    """What several clients know together of the nodes around them.

    Attributes
    ----------
    names
        The clients.
    ids
        (m,) foreign nodes that one of them has an edge to.
    block
        (n, m) sparse, their edges to these nodes.
    sums
        (n, M) sums over the foreign neighbours of each of their nodes.
    given
        (m, M) what their own nodes add to the neighbour sum of each foreign node.
    view
        One of the views, for what all clients know.
    """

    names: tuple[str, ...]
    ids: NDArray[np.str_]
    block: Any
    sums: Array
    given: Array
    view: ClientView


def form_coalition(views: Sequence[ClientView]) -> Coalition:
    """Put the views of clients together; a single client is a coalition too."""
    own = np.concatenate([view.subgraph.ids for view in views])
    outside = np.concatenate([view.subgraph.external_ids for view in views])
    ids = np.setdiff1d(outside, own)
    order = np.argsort(own)
    sums = np.concatenate([view.received for view in views])
    given = np.zeros((ids.size, sums.shape[1]))
    blocks = []
    for view in views:
        far = view.subgraph.external_ids
        inside = np.isin(far, own)
        owed = view.operator.owed(view.Q)
        # What one member adds to the sums of another is known to both.
        at = order[np.searchsorted(own, far[inside], sorter=order)]
        np.subtract.at(sums, at, owed[inside])
        place = np.searchsorted(ids, far[~inside])
        np.add.at(given, place, owed[~inside])
        to = sp.csr_array(
            (np.ones(place.size), (np.flatnonzero(~inside), place)), shape=(far.size, ids.size)
        )
        blocks.append(foreign_block(view.subgraph) @ to)
    names = tuple(view.subgraph.name for view in views)
    return Coalition(names, ids, sp.vstack(blocks).tocsr(), sums, given, views[0])
