"""FedStruct with Hop2Vec: learned features of all nodes, weighed by walks over the whole graph.

Aliakbari et al., "FedStruct: Federated Decoupled Learning over Interconnected Graphs" (ICLR 2025).
Every organisation adds to its local logits the sum over all nodes u of the weight of walks to u,
times what a model says of u's learned row. The weights come from the program `walks`, in which
organisations hand on pruned rows. Its sums are as wide as the graph has nodes: on larger graphs
`read-walks` reads the same weights off the whole graph, in simulations.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from fedlap_app.errors import DataError
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import MODEL, WHOLE, Parameters, Records, Schema
from fedlap_app.methods.fedsgd import FedSGD
from fedlap_app.models.options import StructureOptions, WalkOptions
from fedlap_app.models.specs import ROWS
from fedlap_app.sums.programs import Walks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.tensors import GraphTensors
    from fedlap_app.settings import Settings


class FedStruct(FedSGD):
    """Averaged gradients of f(X, E, v) + sum over u of walks(v, u) g(S_u)."""

    name: ClassVar[str] = "fedstruct"
    summary: ClassVar[str] = "learned rows, weighed by walks"
    reads: ClassVar[frozenset[str]] = FedSGD.reads | keys_of(StructureOptions, WalkOptions)
    structural: ClassVar[bool] = True
    counts_nodes: ClassVar[bool] = True
    programs: ClassVar[tuple[str, ...]] = (Walks.name,)
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server learns how many nodes every organisation has and adds sealed sums; with plain "
        "training it also sees each one's gradient of the learned rows, where one that is not zero "
        "says which nodes are within reach of its training nodes.",
        "Organisations learn the weights of walks from their nodes to all others, edges between "
        "foreign nodes included, and the learned row of every node.",
        "With read-walks, for simulations, the weights are read off the whole graph, where sums of "
        "dense rows would take n numbers for each node and step.",
    )

    @classmethod
    def needs(cls, settings: "Settings") -> tuple[str, ...]:
        """The walks, unless they are read off the whole graph."""
        return () if settings.read_walks else cls.programs

    @property
    def simulated(self) -> bool:
        """Whether others' edges are read."""
        return bool(self.settings.read_walks)

    def nodes(self, found: Mapping[str, Any]) -> int:
        """As many as the walks have columns."""
        if self.settings.read_walks:
            return sum(part.num_nodes for part in found[WHOLE])
        return int(found[Walks.name].weights.shape[1])

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """Both models, and a row for every node."""
        from fedlap_app.models.walks import build_walks

        settings = self.settings
        features = None if settings.model == "none" else self.spec(schema)
        structure = replace(settings.structure_spec(schema.classes), activation="none")
        count = schema.nodes or held
        return build_walks(features, structure, seed, count, weighted=settings.weighted)

    def received(self, org: "Organisation", records: Records) -> Parameters:
        """The model, for whose rows the network makes room."""
        from fedlap_app.models.walks import WalkModel

        assert isinstance(org.model, WalkModel)
        org.model.make_room(len(records[MODEL][ROWS]))
        return records[MODEL]

    def inputs(self, part: Subgraph, found: Mapping[str, Any]) -> "GraphTensors":
        """Features, internal edges and the weights of walks."""
        from fedlap_app.graphs.reach import reach_of
        from fedlap_app.models.sparse import SparseMatrix

        tensors, settings = super().inputs(part, found), self.settings
        if settings.read_walks:
            weights = reach_of(part, found[WHOLE], settings.walk_steps, settings.walk_entries)
        else:
            weights = found[Walks.name].weights
            if weights.shape[0] != part.num_nodes:
                raise DataError(
                    f"the walks are those of {weights.shape[0]} nodes and {part.name} has "
                    f"{part.num_nodes} now: train again, which computes new ones"
                )
        return replace(tensors, walks=SparseMatrix.from_scipy(weights, tensors.device))

    def loss(self, model: "nn.Module", inputs: "GraphTensors") -> "Tensor":
        """Cross-entropy, of each branch too if asked for."""
        from fedlap_app.models.fusion import TwoBranches, branch_cross_entropy

        assert isinstance(model, TwoBranches)
        return branch_cross_entropy(model, inputs, self.settings.branch_loss)
