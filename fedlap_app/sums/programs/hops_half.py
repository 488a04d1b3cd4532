"""One member's half of a program of hops: rows go out block by block, what comes is filed."""

import math
from typing import Protocol

import numpy as np

from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.spectral import totals
from fedlap_app.spectral.solvers import Contribution
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.columns import FILE
from fedlap_app.sums.program import Array, Half, Site, State

_NUMBER = 8
_LARGEST = 2.0 ** (totals.OCTAVES + totals.LOWEST - 1)


class Hops(Protocol):
    """What a half needs of its program."""

    @property
    def hops(self) -> int:
        """How many there are."""

    @property
    def block(self) -> int:
        """Columns of a block."""


class Near(Protocol):
    """What a hop does with rows."""

    def columns(self, features: int, hop: int) -> int:
        """Columns of a hop."""

    def owed(self, X: Array, hop: int) -> Array:
        """What the owners of the external nodes get of some columns of the hop's rows."""

    def marks(self) -> Array:
        """A column behind the others, in hops that have one more."""

    def combine(self, X: Array, received: Array) -> Array:
        """The own rows after the hop."""


class HopsHalf(Half):
    """The rows of a hop go out block by block, what comes is kept in a file.

    Attributes
    ----------
    hop, column
        Where it is: hops gone, and columns of this one received.
    unit
        What numbers of this hop are divided by; 0: it is not agreed yet.
    """

    def __init__(self, program: Hops, site: Site) -> None:
        self.program = program
        self.site = site
        self.hop = self.column = self.features = 0
        self.unit = 0.0
        self.near: Near
        self.rows = self._received = np.zeros((site.subgraph.num_nodes, 0))

    def begin(self, near: Near, rows: Array) -> None:
        """Begin the first hop with some rows."""
        self.near, self.rows = near, rows
        self.features = rows.shape[1]
        self._begin_hop()

    def _begin_hop(self) -> None:
        self.column, self.unit = 0, 0.0
        columns = self.near.columns(self.features, self.hop)
        self._received = np.zeros((len(self.rows), columns))

    @property
    def small_kind(self) -> str:
        """What the small numbers are."""
        return "marks of the largest number"

    @property
    def done(self) -> bool:
        """Whether all hops are gone."""
        return self.hop == self.program.hops

    @property
    def exchanged(self) -> int:
        """Columns received in all hops."""
        return self.hop * self.features + self.column

    @property
    def _block(self) -> slice:
        """Columns of this round."""
        end = min(self.column + self.program.block, self._received.shape[1])
        return slice(self.column, int(end))

    def contribute(self) -> Contribution:
        """Marks of the largest number that is owed, then block after block."""
        if not self.unit:
            return Contribution(None, totals.marks(np.array([self._largest()])))
        owed = self._owed(self._block) / self.unit
        if self._block.stop > self.features:
            owed = np.hstack([owed, self.near.marks()])
        return Contribution(owed, np.zeros(0))

    def _owed(self, block: slice) -> Array:
        return self.near.owed(self.rows[:, block], self.hop)

    def _largest(self) -> float:
        """Largest absolute value that is owed in this hop."""
        largest = 0.0
        for start in range(0, self.features, self.program.block):
            part = self._owed(slice(start, start + self.program.block))
            largest = max(largest, float(np.abs(part).max(initial=0.0)))
        if not largest < _LARGEST:
            raise DataError(
                f"A sum of features is not below {_LARGEST:.3g} in absolute value, or not finite: "
                "scale the features down"
            )
        return largest

    def absorb(self, received: Array | None, small: Array) -> None:
        """Agree on the unit, or take in the sums of a block."""
        if self.done:
            raise ProtocolError("All sums were taken in; the message came too late.")
        if not self.unit:
            self._agree(small)
            return
        block = self._block
        if received is None or received.shape != (len(self.rows), block.stop - block.start):
            shape = None if received is None else received.shape
            raise ProtocolError(
                f"The received block has shape {shape}; {len(self.rows)} rows of "
                f"{block.stop - block.start} columns were expected: the members are not in the "
                "same round."
            )
        values = received * self.unit
        if block.stop > self.features:
            values[:, -1] = received[:, -1]
        content = np.ascontiguousarray(values.T, dtype="<f8")
        if content.size:
            place = self._offset(self.hop, block.start)
            self.site.files.write_at(FILE, place, [content.data.cast("B")])
        self._take(block, values)

    def _take(self, block: slice, values: Array) -> None:
        """Columns of this hop; after the last one the next hop begins."""
        self._received[:, block] = values
        self.column = block.stop
        if self.column == self._received.shape[1]:
            self.rows = self.near.combine(self.rows, self._received[:, : self.features])
            self.hop += 1
            if not self.done:
                self._begin_hop()

    def _agree(self, small: Array) -> None:
        """A unit by which the largest possible sum fills half of what the back end holds."""
        if small.shape != (totals.OCTAVES,) or not np.isfinite(small).all():
            raise ProtocolError(
                f"{small.size} marks arrived where {totals.OCTAVES} finite ones were expected: "
                "the members are not in the same round."
            )
        most = 2.0 * self.site.members * totals.limit(small)
        self.unit = 2.0 ** math.ceil(math.log2(most / self.site.spec.limit))

    def _offset(self, hop: int, column: int) -> int:
        return _NUMBER * len(self.rows) * (hop * self.features + column)

    def settle(self) -> State:
        """Where it is; what came is in the file."""
        return {"place": np.array([self.hop, self.column]), "unit": np.array([self.unit])}

    def restore(self, state: State, stored: Data) -> None:
        """Go through the hops again with what came."""
        if not state:
            return
        hops, column = map(int, state["place"])
        while not self.done and self.hop <= hops:
            end = column if self.hop == hops else self._received.shape[1]
            if not end:
                break
            hop, size = self.hop, _NUMBER * len(self.rows) * end
            content = self.site.files.read_at(FILE, self._offset(hop, 0), size) if size else b""
            self._take(slice(0, end), np.frombuffer(content, "<f8").reshape(end, -1).T)
            if hop == hops:
                break
        self.unit = float(state["unit"][0])
