"""One member's half of the program `neighbour-sums`, and the sums that it leaves in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import DataError, ProtocolError
from fedlap_app.spectral.neighbourhood import Neighbourhood, own_ends
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.price import Stated
from fedlap_app.sums.job.results import Facts, Results
from fedlap_app.sums.program import Array, Bools, Site
from fedlap_app.sums.programs.hops_half import HopsHalf

if TYPE_CHECKING:
    from fedlap_app.sums.programs.neighbour_sums import NeighbourSums


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


class NeighbourHalf(HopsHalf):
    """One member's half."""

    def __init__(self, program: "NeighbourSums", site: Site) -> None:
        super().__init__(program, site)
        least = program.least_contributors
        rows = _values_of(site)
        if not rows.shape[1]:
            raise DataError("The nodes have no features to be summed: take another method.")
        self.sums = Neighbourhood(site.subgraph, program.scaling, least, _heard(site, least))
        self.begin(self.sums, rows)

    def result(self, facts: Facts, parts: Sequence[Data], price: Stated | None) -> SummedNeighbours:
        """The own rows, and which of them lack nothing."""
        if not self.done:
            raise ProtocolError("The neighbour sums are not finished; the message came too early.")
        complete = self.sums.complete(self.program.hops, self._received[:, -1])
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
