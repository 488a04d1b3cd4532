"""The parts of a run that is in one place: handed over in memory, or found by its settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fedlap_app.graphs.federation import load_federation
from fedlap_app.graphs.folder import read_federation
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings


@dataclass(frozen=True)
class Part:
    """What one organisation holds, and the organisation folder that it was read from."""

    subgraph: Subgraph
    folder: Path | None = None


Parts = Sequence[Part]


def subgraphs_of(settings: Settings, parts: Parts = ()) -> list[Subgraph]:
    """The parts that were handed over, or else those that settings with clients name."""
    if parts:
        return [part.subgraph for part in parts]
    if settings.data:
        return read_federation(Path(settings.data), directed=settings.directed)
    return load_federation(settings.data_spec)
