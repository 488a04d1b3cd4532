"""FedSage+: a graph whose missing neighbours are put back, here the true ones as an upper bound.

Zhang et al., "Subgraph Federated Learning with Missing Neighbor Generation" (NeurIPS 2021) train a
generator of the neighbours that an organisation cannot see. `ideal` is what a perfect one would
give: the true features of foreign neighbours, with the edges to them, in simulations only.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.ball import ball_of
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import WHOLE
from fedlap_app.methods.fedsgd import FedSGD

if TYPE_CHECKING:
    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings


class FedSage(FedSGD):
    """Averaged gradients on parts with their foreign neighbours."""

    name: ClassVar[str] = "fedsage+"
    summary: ClassVar[str] = "foreign neighbours put back"
    reads: ClassVar[frozenset[str]] = FedSGD.reads | {"ideal"}
    weakness: ClassVar[str] = (
        "Simulation: every organisation reads the raw features of its foreign neighbours."
    )
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's gradient, as with fedsgd.",
        "With ideal, for simulations, every organisation reads the raw features of all foreign "
        "neighbours of its nodes.",
        "Labels, and edges between foreign nodes, stay where they are.",
    )

    @classmethod
    def check(cls, settings: "Settings") -> None:
        """Only the upper bound is there."""
        if not settings.ideal:
            raise ConfigError(
                "method = 'fedsage+' has no trained generator of neighbours here, only its upper "
                "bound: set ideal = true, which runs in simulations"
            )

    @property
    def simulated(self) -> bool:
        """Always."""
        return True

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """The part with the foreign ends of its edges."""
        return super().inputs(ball_of(part, found[WHOLE], 1, among_foreign=False), {})
