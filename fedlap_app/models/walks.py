"""A model of learned rows of all nodes, weighed by walks to them (FedStruct's Hop2Vec)."""

from torch import Tensor, nn

from fedlap_app.errors import ConfigError
from fedlap_app.models.determinism import seeded
from fedlap_app.models.fusion import TwoBranches
from fedlap_app.models.networks import build_model
from fedlap_app.models.specs import ModelSpec, StructureSpec
from fedlap_app.models.start import normal
from fedlap_app.models.structure import START_SPREAD, StructureHead
from fedlap_app.models.tensors import GraphTensors


class WalkModel(TwoBranches):
    """f(X, E, v) + sum over u of walks(v, u) g(S_u)."""

    structure: StructureHead

    def __init__(
        self, features: nn.Module | None, structure: StructureHead, rows: Tensor, *, weighted: bool
    ) -> None:
        super().__init__(features, structure, weighted=weighted)
        self.rows = nn.Parameter(rows)

    def make_room(self, count: int) -> None:
        """Have so many rows; what they hold is about to be replaced."""
        if len(self.rows) != count:
            self.rows = nn.Parameter(self.rows.new_zeros(count, self.rows.shape[1]))

    def structure_logits(self, tensors: GraphTensors) -> Tensor:
        """Logits of all rows, propagated: fewer columns than to propagate the rows."""
        if tensors.walks is None:
            raise ConfigError("The model reads weights of walks, but none came with the data.")
        return tensors.walks.times(self.structure(self.rows))


def build_walks(
    features: ModelSpec | None, structure: StructureSpec, seed: int, count: int, *, weighted: bool
) -> WalkModel:
    """Make both models and `count` rows on the CPU; the same seed gives the same everywhere."""
    model = None if features is None else build_model(features, seed)
    with seeded(seed):
        head = StructureHead(structure)
        rows = normal(START_SPREAD, count, structure.width)
    return WalkModel(model, head, rows, weighted=weighted)
