"""The program `row-names`: the handshake alone, which names the rows that are learned together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.ledger import SENT, SERVER, Entry
from fedlap_app.spectral.solvers import Round
from fedlap_app.store.packing import Data
from fedlap_app.sums.job.row_keys import KEY_BYTES, name_rows, write_order
from fedlap_app.sums.program import Extent, Footprint, Program, Site
from fedlap_app.sums.programs.krylov import Krylov


@dataclass(frozen=True)
class RowNames(Program):
    """The handshake, with the settings of a basis that could have followed.

    Attributes
    ----------
    basis
        Members compare these too, and layouts are made for them.
    """

    basis: Krylov

    name: ClassVar[str] = "row-names"
    sums: ClassVar[bool] = False
    shows_holders: ClassVar[bool] = True
    least_members: ClassVar[int] = 1

    @classmethod
    def from_settings(cls, settings: Any) -> "RowNames":  # noqa: ANN401 - a room above
        """What the settings of a run say."""
        return cls(Krylov.from_settings(settings))

    def agreed(self) -> dict[str, Any]:
        """The settings of the basis, told from it."""
        return {**self.basis.agreed(), "rows": True}

    @property
    def width(self) -> int:
        """Columns for which slots are shared out."""
        return self.basis.width

    @property
    def allowed_operator(self) -> str:
        """Operator of the settings."""
        return self.basis.operator

    @property
    def large_sums(self) -> bool:
        """What decides on the profile."""
        return self.basis.large_sums

    def schedule(self, extent: Extent) -> Iterator[Round]:
        """Nothing after the handshake."""
        yield from ()

    def describe(self, extent: Extent) -> str:
        """There is nothing to choose."""
        return "names of rows, by the handshake alone"

    def closing_bytes(self, held: int) -> int:
        """A name for every own node and every copy."""
        return KEY_BYTES * held

    def footprint(self, rows: int, extent: Extent) -> Footprint:
        """Nothing but messages."""
        return Footprint()

    def reveals(self, parts: Sequence[Subgraph]) -> dict[str, Any]:
        """What the names show."""
        copies = sum(part.num_external for part in parts)
        return {
            "says": [
                "The server learns how many nodes and copies of foreign nodes every organisation "
                "holds, and which of these are the same node, under names that say nothing else."
            ],
            "copies": copies,
        }

    def close(self, site: Site) -> tuple[Data, tuple[Entry, ...]]:
        """Name the rows; their order stays in the store for the messages of the training."""
        keys = site.agreement.keys
        names, order = name_rows(keys, site.subgraph)
        write_order(site.files, order)
        # Keyed hashes under a key of the group.
        entry = Entry(SENT, "names of rows", (SERVER,), (), (keys.key_id,), 1, order.size)
        return names, (entry,)
