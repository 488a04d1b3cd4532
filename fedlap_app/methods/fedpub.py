"""FED-PUB: organisations whose models answer alike on a random graph weigh more for each other.

Baek et al., "Personalized Subgraph Federated Learning" (ICML 2023). Every weight has a mask of its
shape, which stays each organisation's own. As in the authors' code the masks have no penalty: its
terms are summed over tensors that carry no gradient.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedlap_app.methods.base import Parameters, Schema, Turn
from fedlap_app.methods.personal import Floats, Personal, likeness
from fedlap_app.models.specs import MASKS

if TYPE_CHECKING:
    from torch import nn

    from fedlap_app.methods.organisation import Organisation
    from fedlap_app.models.specs import ModelSpec


class FedPub(Personal):
    """Masked models, averaged by how alike they answer."""

    name: ClassVar[str] = "fedpub"
    summary: ClassVar[str] = "a mean for each, by likeness"
    reads: ClassVar[frozenset[str]] = (
        Personal.reads | {"similarity-scale", "proxy-blocks"}
    ) - {"model", "hops", "relay", "linear-head", "input-gain"}  # fmt: skip
    hints: ClassVar[tuple[str, ...]] = ("embedding",)
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's model, its masks and what it answers on a random "
        "graph, round after round, and must: a sealed sum has no single models.",
        "Organisations see a mean in which the models of those like them weigh more, so they learn "
        "most about these.",
        "No edge between organisations is used, so nobody learns of one.",
    )

    def spec(self, schema: Schema) -> "ModelSpec":
        """A GCN over the own edges."""
        return replace(super().spec(schema), kind="gcn", relay=False, dense="none")

    def model(self, schema: Schema, seed: int, *, held: int = 0) -> "nn.Module":
        """The masked network."""
        from fedlap_app.models.masked import build_masked

        return build_masked(self.spec(schema), seed)

    def stays(self, name: str) -> bool:
        """Masks do."""
        return name.startswith(MASKS)

    def hint(self, org: "Organisation", turn: Turn) -> Parameters:
        """Mean embedding of the random graph that all make from the seed of the run."""
        from fedlap_app.models.masked import embedding

        blocks = self.settings.proxy_blocks
        return {"embedding": embedding(org.model, org.shape.features, blocks, self.settings.seed)}

    def shares(self, hints: Sequence[Parameters]) -> Floats:
        """Softmax of the scaled likeness."""
        scaled = self.settings.similarity_scale * likeness([hint["embedding"] for hint in hints])
        raised = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        shares: Floats = raised / raised.sum(axis=1, keepdims=True)
        return shares
