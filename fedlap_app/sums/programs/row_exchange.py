"""One sealed sum over neighbours' old rows: what nodes that came since start with.

Whoever has rows of the old basis contributes, for every foreign node that is new here, the sum of
its own neighbours' rows, each divided as `spectral.extension` has it, and how many they are. The
small sum brings the old eigenvalues to those who were not there.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from fedlap_app.errors import ProtocolError
from fedlap_app.spectral.averaging import Carried
from fedlap_app.spectral.extension import Heard, Rows, unweighted
from fedlap_app.spectral.solvers import Contribution
from fedlap_app.spectral.totals import Totals
from fedlap_app.sums.job.bases import FinishedBasis
from fedlap_app.sums.program import Array, Site, State

if TYPE_CHECKING:
    from fedlap_app.sums.programs.krylov import Krylov

ROOM = 16.0
"""Sums are divided by it: rows of unit columns add up to the root of a degree at most."""

MORE = 3
"""Small numbers beside the eigenvalues: who has them, and both measures of quality."""


class RowExchange:
    """One member's half of the sum.

    Parameters
    ----------
    program, site
        What the basis is, and what the member has.
    totals
        Of the graph.
    unit
        What the operator is divided by.

    Attributes
    ----------
    told
        The summed small numbers (none before the sum).
    """

    def __init__(self, program: "Krylov", site: Site, totals: Totals, unit: float) -> None:
        self.program = program
        self.part = site.subgraph
        self.unit = unit
        self.nodes = float(totals.nodes)
        self.averaging = program.averaging_of(totals.mean_degree)
        self.old: FinishedBasis | None = program.find_start(site.subgraph, site.root)
        if self.old is not None and self.old.graph is None:
            self.old = None
        self.told: Array = np.zeros(0)
        self._received: Array = np.zeros((0, 0))

    @cached_property
    def carried(self) -> Carried:
        """Own rows of the old basis."""
        if self.old is None or self.old.graph is None:
            return Carried.nothing(self.part.num_nodes, self.rank)
        return self.averaging.carry(self.part, self.old.graph, self.old.rows)

    @property
    def rank(self) -> int:
        """Columns of the old basis."""
        return self.program.kept if self.old is None else int(self.old.eigenvalues.size)

    @property
    def drift(self) -> float:
        """Share of the organisation's graph that changed since the basis was computed."""
        if self.old is None or self.old.graph is None:
            return 1.0
        return self.old.facts.drift + self.old.graph.changes(self.part).share

    def contribute(self) -> Contribution:
        """Sums for foreign nodes that are new here, and what the old basis is."""
        small = np.zeros(self.rank + MORE)
        if self.old is None or self.old.graph is None:
            return Contribution(np.zeros((self.part.num_external, self.rank + 1)), small)
        rows, has = self.carried.said
        block = np.column_stack([rows / ROOM, has / self.nodes])
        sides = unweighted(self.part.symmetric_adjacency())[:, self.part.num_nodes :].T.tocsr()
        here = np.isin(self.part.external_ids, self.old.graph.external_ids)
        small[:-MORE] = self.old.eigenvalues / self.unit
        stated = self.old.certificate
        small[-MORE:] = 1.0, stated.orthogonality, stated.residual_max / self.unit
        return Contribution(np.where(here[:, None], 0.0, sides @ block), small)

    def absorb(self, received: Array | None, small: Array) -> None:
        """Take in what neighbours said of nodes without a row."""
        shape = (self.part.num_nodes, self.rank + 1)
        if received is None or received.shape != shape or small.shape != (self.rank + MORE,):
            raise ProtocolError(
                f"Sums over neighbours' rows of another shape than {shape} came: the old basis "
                "has other numbers of vectors at others; update with cold."
            )
        if not np.isfinite(small).all() or small[-MORE] < 0.5:
            raise ProtocolError(
                "Nobody who takes part has the basis that start-basis names: leave it out."
            )
        self.told = np.array(small)
        self._received = np.array(received[~self.carried.known], order="C")

    @cached_property
    def rows(self) -> Rows:
        """Rows for all own nodes: old ones, and means over neighbours."""
        sums, counts = np.zeros((self.part.num_nodes, self.rank)), np.zeros(self.part.num_nodes)
        missing = ~self.carried.known
        sums[missing] = self._received[:, :-1] * ROOM
        counts[missing] = np.rint(self._received[:, -1] * self.nodes)
        return self.averaging.fill(self.part, self.carried, Heard(sums, counts))

    @property
    def values(self) -> Array:
        """Old eigenvalues, divided as the operator is."""
        found: Array = self.told[:-MORE] / self.told[-MORE]
        return found

    @property
    def quality(self) -> tuple[float, float]:
        """What the old basis was certified for."""
        orthogonality, residual = self.told[-2:] / self.told[-MORE]
        return float(orthogonality), float(residual) * self.unit

    def state(self) -> State:
        """What is needed to go on after the sum."""
        return {"told": self.told, "heard": self._received}

    def restore(self, state: State) -> None:
        """Go on after the sum."""
        self.told = np.asarray(state.pop("told"), dtype=np.float64)
        self._received = np.asarray(state.pop("heard"), dtype=np.float64)
