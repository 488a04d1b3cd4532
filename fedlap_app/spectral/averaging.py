"""The rows that an organisation's nodes have now, when its graph changed since."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral.extension import Rows, extend, left_out, links_of, scale_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Averaging:
    """How rows of neighbours become a node's row.

    Attributes
    ----------
    operator : whose eigenvectors the rows are; empty for rows that were learned.
    added : what it adds to every degree.
    """

    operator: str = ""
    added: float = 0.0

    def fit(self, part: Subgraph, graph: Snapshot, held: Rows) -> Rows:
        """Give every node of a part its old row, one from its neighbours', or zero.

        Parameters
        ----------
        part
            What the organisation has now.
        graph, held
            What it had, and the rows of its nodes then. A row that was none then is looked for
            again.
        """
        place = graph.places(part.ids)
        stayed = place >= 0
        scale = scale_of(self.operator, graph.degrees, self.added)
        return extend(
            np.where(stayed[:, None], held.U[place], 0.0),
            stayed & held.computed[place],
            links_of(part, self.operator),
            np.where(stayed, scale[place], 0.0),
            scale_of(self.operator, part.degrees(), self.added),
            stayed & held.known[place],
        )

    def as_if_new(
        self, part: Subgraph, held: Array, nodes: NDArray[np.int64]
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Rows with those that some nodes would have if they were new, and who would have one.

        Parameters
        ----------
        part, held
            What the organisation has now, with its rows.
        nodes
            Each is left out by itself.
        """
        scale = scale_of(self.operator, part.degrees(), self.added)
        means, found = left_out(held, links_of(part, self.operator), nodes, scale)
        rows = np.array(held)
        rows[nodes] = means
        return rows, found
