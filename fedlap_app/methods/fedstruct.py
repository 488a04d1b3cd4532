"""FedStruct with Hop2Vec: learned features of all nodes, weighed by walks over the whole graph.

Aliakbari et al., "FedStruct: Federated Decoupled Learning over Interconnected Graphs" (ICLR 2025).
Every organisation adds to its local logits the sum over all nodes u of the weight of walks to u,
times what a model says of u's learned row. The weights are those that organisations would compute
by handing on pruned rows of walks; here a simulation reads them off the whole graph.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import WHOLE, Schema
from fedlap_app.methods.fedsgd import FedSGD
from fedlap_app.models.options import StructureOptions, WalkOptions

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.tensors import GraphTensors


class FedStruct(FedSGD):
    """Averaged gradients of f(X, E, v) + sum over u of walks(v, u) g(S_u)."""

    name: ClassVar[str] = "fedstruct"
    summary: ClassVar[str] = "learned rows, weighed by walks"
    reads: ClassVar[frozenset[str]] = FedSGD.reads | keys_of(StructureOptions, WalkOptions)
    structural: ClassVar[bool] = True
    counts_nodes: ClassVar[bool] = True
    weakness: ClassVar[str] = (
        "Simulation: weights of walks over the whole graph are read off it, not computed together."
    )
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees, besides gradients, each organisation's gradient of the learned rows: one "
        "that is not zero says which foreign nodes are within reach of its training nodes.",
        "Organisations learn the weights of walks from their nodes to all others, edges between "
        "foreign nodes included, and the learned row of every node.",
        "The weights are read off the whole graph, in a simulation only: no program of sealed sums "
        "computes them here, and one of dense rows would take n numbers for each node and step.",
    )

    @property
    def simulated(self) -> bool:
        """Always."""
        return True

    def held(self, org: "Organisation") -> int:
        """All nodes of the graph."""
        return sum(part.num_nodes for part in org.everyone())

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """Both models, and a row for every node."""
        from fedlap_app.models.walks import build_walks

        settings = self.settings
        features = None if settings.model == "none" else self.spec(schema)
        structure = replace(settings.structure_spec(schema.classes), activation="none")
        count = held or schema.nodes
        return build_walks(features, structure, seed, count, weighted=settings.weighted)

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """Features, internal edges and the weights of walks."""
        from fedlap_app.graphs.reach import reach_of
        from fedlap_app.models.sparse import SparseMatrix

        tensors = super().inputs(part, found)
        weights = reach_of(part, found[WHOLE], self.settings.walk_steps, self.settings.walk_entries)
        return replace(tensors, walks=SparseMatrix.from_scipy(weights, tensors.device))

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy, of each branch too if asked for."""
        from fedlap_app.models.fusion import TwoBranches, branch_cross_entropy

        assert isinstance(model, TwoBranches)
        return branch_cross_entropy(model, inputs, self.settings.branch_loss)
