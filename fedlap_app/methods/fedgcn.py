"""FedGCN: neighbours' features are summed once before training, over organisations.

The sums come from the program `neighbour-sums`. With one hop they are the input of a GCN whose
further layers propagate over the own edges; with two hops, of an MLP. What the authors of the
FedLap paper ran under this name is another thing: `raw-ball` hands every organisation the raw
features and edges of all nodes within reach, and runs in simulations only.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedlap_app.graphs.ball import ball_of
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.methods.base import WHOLE, Schema
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.sums.programs import NeighbourSums

if TYPE_CHECKING:
    from fedlap_app.models.specs import ModelSpec
    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings


class FedGCN(FedAvg):
    """Federated averaging of a model whose input is summed over all neighbours."""

    name: ClassVar[str] = "fedgcn"
    summary: ClassVar[str] = "sums of neighbours' features"
    weighs_branches: ClassVar[bool] = False
    reads: ClassVar[frozenset[str]] = FedAvg.reads | {"raw-ball"}
    programs: ClassVar[tuple[str, ...]] = (NeighbourSums.name,)
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server adds sealed sums that it cannot read, then sees models and counts of scores as "
        "with fedavg.",
        "Organisations learn, for their own nodes, sums over foreign neighbours of features; one "
        "of a single neighbour is left out, and what sums give away together `fedlap audit "
        "--program neighbour-sums` counts.",
        "With raw-ball, for simulations, every organisation reads the raw features and edges of "
        "all nodes within reach, most of the graph where it is cut at random.",
    )

    @classmethod
    def needs(cls, settings: "Settings") -> tuple[str, ...]:
        """The sums, unless raw features stand in their place."""
        return () if settings.raw_ball else cls.programs

    @property
    def simulated(self) -> bool:
        """Whether raw features of others are read."""
        return self.settings.raw_ball

    def spec(self, schema: Schema) -> "ModelSpec":
        """A GCN without its first propagation, or an MLP."""
        found = super().spec(schema)
        if self.settings.raw_ball:
            return found
        if self.settings.neighbour_hops == 1:
            return replace(found, kind="gcn", dense="first")
        return replace(found, kind="decoupled", hops=0, relay=False, dense="none")

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """The sums in place of features; or the raw ball."""
        if self.settings.raw_ball:
            return super().inputs(ball_of(part, found[WHOLE], self.settings.neighbour_hops), {})
        from fedlap_app.models.summed import with_sums

        tensors = super().inputs(part, found)
        summed = with_sums(tensors, found[NeighbourSums.name].sums, self.settings.input_norm)
        assert summed.sums is not None
        return replace(summed, x=summed.sums)
