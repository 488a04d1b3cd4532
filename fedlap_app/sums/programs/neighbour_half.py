"""One member's half of the program `neighbour-sums`, and the sums that it leaves in the store."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.spectral import totals
from fedlap_app.spectral.neighbourhood import Neighbourhood, own_ends
from fedlap_app.spectral.solvers import Contribution
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.columns import FILE
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts, Results
from fedlap_app.sums.program import Array, Bools, Half, Site, State

if TYPE_CHECKING:
    from fedlap_app.sums.programs.neighbour_sums import NeighbourSums

_NUMBER = 8
_LARGEST = 2.0 ** (totals.OCTAVES + totals.LOWEST - 1)


@dataclass(frozen=True, eq=False)
class SummedNeighbours:
    """What one organisation has at the end.

    Attributes
    ----------
    sums
        (n, columns) in the order of its nodes.
    complete
        (n,) nodes whose sums lack nothing; of others, foreign parts are left out.
    facts
        What it belongs to.
    """

    sums: Array
    complete: Bools
    facts: Facts


class NeighbourResults(Results[SummedNeighbours]):
    """The finished sums of one store."""

    kind = "neighbour sums"

    def _pack(self, result: SummedNeighbours) -> tuple[Facts, list[Data]]:
        sums = np.ascontiguousarray(result.sums, dtype="<f8")
        return result.facts, [sums.data.cast("B"), result.complete.tobytes()]

    def _unpack(self, facts: Facts, parts: list[memoryview]) -> SummedNeighbours:
        content, flags = parts
        complete = np.frombuffer(flags, np.bool_)
        sums = np.frombuffer(content, "<f8").reshape(complete.size, -1)
        return SummedNeighbours(sums, complete, facts)


class NeighbourHalf(Half):
    """One member's half: the rows of a hop go out block by block, what comes is kept in a file.

    Attributes
    ----------
    hop, column
        Where it is: hops gone, and columns of this one received.
    unit
        What numbers of this hop are divided by; 0: it is not agreed yet.
    """

    small_kind = "marks of the largest number"

    def __init__(self, program: "NeighbourSums", site: Site) -> None:
        self.program = program
        self.site = site
        self.hop = self.column = 0
        self.unit = 0.0
        least = program.least_contributors
        self.near = Neighbourhood(site.subgraph, program.scaling, least, _heard(site, least))
        self.rows = _values_of(site)
        self.features: int = self.rows.shape[1]
        if not self.features:
            raise DataError("The nodes have no features to be summed: take another method.")
        self._received: Array = np.zeros((0, 0))
        self._begin_hop()

    def _begin_hop(self) -> None:
        self.column, self.unit = 0, 0.0
        columns = self.near.columns(self.features, self.hop)
        self._received = np.zeros((len(self.rows), columns))

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
            raise ProtocolError("The neighbour sums are finished; the message came too late.")
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

    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> SummedNeighbours:
        """The own rows, and which of them lack nothing."""
        if not self.done:
            raise ProtocolError("The neighbour sums are not finished; the message came too early.")
        complete = self.near.complete(self.program.hops, self._received[:, -1])
        return SummedNeighbours(self.rows, complete, facts)


def _heard(site: Site, least: int) -> Bools:
    """(m,) external nodes whose owners want a contribution, where nothing speaks against it."""
    heard = np.zeros(site.subgraph.num_external, dtype=bool)
    ends = own_ends(site.subgraph)
    for name, target in site.agreement.targets.items():
        # Whoever is the only sender knows how many rows are in a sum, whatever its owner says.
        alone = site.agreement.senders_of(name) == (site.agreement.keys.me,)
        heard[target.positions] = (ends[target.positions] >= least) if alone else True
    return heard


def _values_of(site: Site) -> NDArray[np.float64]:
    """(n, columns) numbers that are summed."""
    if site.values is not None:
        return np.asarray(site.values, dtype=np.float64)
    features = site.subgraph.features
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    return np.asarray(dense, dtype=np.float64)
