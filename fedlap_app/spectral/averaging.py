"""The rows that an organisation's nodes have now, when its graph changed since."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.snapshot import Snapshot
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.spectral.extension import (
    Bools,
    Heard,
    Rows,
    extend,
    left_out,
    links_of,
    scale_of,
)

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Carried:
    """Old rows by the nodes of now.

    Attributes
    ----------
    U : (n, rank), zero where there is none.
    computed, known : (n,) whether a row is one of the basis, and whether there is one.
    scale : (n,) what a row is divided by before rows are averaged, zero where there is none.
    """

    U: Array
    computed: Bools
    known: Bools
    scale: Array

    @classmethod
    def nothing(cls, nodes: int, rank: int) -> "Carried":
        """What an organisation has that takes part for the first time."""
        no = np.zeros(nodes, dtype=bool)
        return cls(np.zeros((nodes, rank)), no, no, np.zeros(nodes))

    @property
    def said(self) -> tuple[Array, Bools]:
        """(n, rank) rows as neighbours average them, and which nodes have one."""
        has = self.known & (self.scale > 0.0)
        return np.divide(self.U, self.scale[:, None], where=has[:, None], out=self.U * 0.0), has


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
        return self.fill(part, self.carry(part, graph, held))

    def carry(self, part: Subgraph, graph: Snapshot, held: Rows) -> Carried:
        """Old rows by the nodes of now; parameters as of `fit`."""
        place = graph.places(part.ids)
        stayed = place >= 0
        scale = scale_of(self.operator, graph.degrees, self.added)
        return Carried(
            np.where(stayed[:, None], held.U[place], 0.0),
            stayed & held.computed[place],
            stayed & held.known[place],
            np.where(stayed, scale[place], 0.0),
        )

    def fill(self, part: Subgraph, old: Carried, heard: Heard | None = None) -> Rows:
        """Find rows for the nodes that have none.

        Parameters
        ----------
        part
            What the organisation has now.
        old
            The rows that its nodes have.
        heard
            What foreign neighbours said (default: nobody asked them).
        """
        return extend(
            old.U,
            old.computed,
            links_of(part, self.operator),
            old.scale,
            scale_of(self.operator, part.degrees(), self.added),
            old.known,
            heard,
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
