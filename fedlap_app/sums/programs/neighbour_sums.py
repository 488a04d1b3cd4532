"""The program `neighbour-sums`: every node's sum over all its neighbours' numbers, hop by hop.

A hop begins with a small sum of marks, from which all know the power of two that the largest
number stays below, and so a common scale that fills what the back end holds. Its columns follow in
blocks. There is no leader: whoever has opened the last sums has its result.

For own nodes with too few foreign neighbours an organisation tells its partners no slot, and they
send nothing for them (`spectral.neighbourhood`). Nobody else knows how many foreign neighbours a
node has: one that lies about it, and asks for a sum of a single row, gets that row, unless its
sender is the only one and so knows that it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.consent import FEATURES
from fedlap_app.spectral import totals
from fedlap_app.spectral.neighbourhood import SCALINGS, unheard
from fedlap_app.spectral.solvers import Round
from fedlap_app.sums.program import Bools, Extent, Footprint, Program, Site
from fedlap_app.sums.programs.neighbour_half import NeighbourHalf, NeighbourResults

MOST_HOPS = 2
_NUMBER = 8


@dataclass(frozen=True)
class NeighbourSums(Program):
    """Settings of the sums.

    Attributes
    ----------
    hops
        1: A X; 2: A (A X).
    scaling
        Of each hop, see `Neighbourhood`.
    block
        Columns of a block.
    least_contributors
        Foreign neighbours without whom a node gets no foreign sum.
    """

    hops: int = 1
    scaling: str = "none"
    block: int = 64
    least_contributors: int = 2

    name: ClassVar[str] = "neighbour-sums"
    kept_as: ClassVar[str] = "neighbour-sums"
    counted: ClassVar[str] = FEATURES
    blocks: ClassVar[str] = "feature columns"
    block_sums: ClassVar[str] = "sums of neighbours' features"

    def __post_init__(self) -> None:
        if not 1 <= self.hops <= MOST_HOPS or self.scaling not in SCALINGS:
            raise ConfigError(
                f"neighbour sums of {self.hops} hops scaled '{self.scaling}' do not exist: take 1 "
                f"or {MOST_HOPS} hops and a scaling of {', '.join(SCALINGS)}"
            )
        if self.block < 1 or self.least_contributors < 1:
            raise ConfigError(
                f"neighbour sums in blocks of {self.block} columns over {self.least_contributors} "
                "neighbours do not exist: both must be at least 1"
            )

    @classmethod
    def from_settings(cls, settings: Any) -> "NeighbourSums":  # noqa: ANN401 - a room above
        """What the settings of a run say; they cannot loosen the guard."""
        return cls(hops=settings.neighbour_hops, scaling=settings.neighbour_scaling)

    def agreed(self) -> dict[str, Any]:
        """All settings."""
        return {"program": self.name, **asdict(self)}

    @property
    def width(self) -> int:
        """Columns of a block."""
        return self.block

    @property
    def products(self) -> int:
        """Columns that each feature takes."""
        return self.hops

    def schedule(self, extent: Extent) -> Iterator[Round]:
        """For every hop the marks, then its columns in blocks."""
        if extent.features < 1:
            raise ConfigError(
                "neighbour sums need nodes with features, and their number of columns: name a "
                "data set that has some"
            )
        for hop in range(self.hops):
            yield Round(0, totals.OCTAVES)
            columns = extent.features + (hop > 0)
            for start in range(0, columns, self.block):
                yield Round(min(self.block, columns - start), 0)

    def describe(self, extent: Extent) -> str:
        """Columns, hops and scaling."""
        hops = "1 hop" if self.hops == 1 else f"{self.hops} hops"
        return (
            f"sums over neighbours of {extent.features} columns in blocks of {self.block}, {hops}, "
            f"scaling '{self.scaling}'"
        )

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """The rows, what came and their sums; the sums; where the job is."""
        columns = extent.features + 1
        return Footprint(
            held=3 * _NUMBER * rows * columns,
            left=_NUMBER * rows * extent.features + rows,
            state=3 * _NUMBER,
        )

    def unheard(self, subgraph: Subgraph) -> Bools | None:
        """Own nodes with too few foreign neighbours."""
        return unheard(subgraph, self.least_contributors)

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What partners learn of features, and how many sums are left out."""
        # An audit alone needs linear algebra for it.
        from fedlap_app.privacy.solvable import determined, foreign_block

        least = self.least_contributors
        left_out = {part.name: int(self._unheard(part).sum()) for part in parts}
        boundary = solved = foreign = 0
        for part in parts:
            block = foreign_block(part)
            boundary += int((np.diff(block.indptr) > 0).sum())
            solved += int(determined(block[~self._unheard(part)]).sum())
            foreign += part.num_external
        total = sum(left_out.values())
        says = [
            "Every organisation learns, for each own node, the sum of its foreign neighbours' "
            f"features, scaled as '{self.scaling}'"
            + (", and of these sums in a second hop." if self.hops > 1 else "."),
            f"{total} of {boundary} nodes with foreign neighbours have fewer than {least} of them: "
            "their foreign sum is left out, so that no sum is the row of a single node. Partners "
            "who hold their neighbours learn that these nodes have no others.",
            f"By subtracting sums of the first hop from each other an organisation can compute the "
            f"features of {solved} of {foreign} foreign neighbours exactly.",
            "The sums of two jobs with different scalings or hops can be solved for single rows, "
            "where degrees are known: count on one job only for each graph.",
            "Where features are 0 or 1 alone, a sum of 0, or of as many as there are neighbours, "
            "tells this feature of all of them.",
            "An organisation that lies about how many foreign neighbours a node has gets the "
            "features of a single one, where several organisations send it sums.",
            "All learn, hop by hop, how many of them have their largest number between which "
            "powers of two.",
        ]
        if self.hops > 1:
            says.append(
                "In the second hop a neighbour's sum over fewer than "
                f"{least} rows that are not the recipient's is left out as well, and the recipient "
                "learns by how many senders. What both hops give away together is not counted here."
            )
        return {
            "says": says,
            "left_out": left_out,
            "boundary": boundary,
            "solved": solved,
            "foreign": foreign,
        }

    def _unheard(self, part: Subgraph) -> Bools:
        return unheard(part, self.least_contributors)

    def results(self, root: Path, *, durable: bool) -> NeighbourResults:
        """Finished sums of a store."""
        return NeighbourResults(root / self.kept_as, durable=durable)

    def half(self, site: Site) -> NeighbourHalf:
        """A member's half."""
        return NeighbourHalf(self, site)
