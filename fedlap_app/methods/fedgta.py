"""FedGTA: organisations whose predictions have alike moments after propagation are averaged.

Li et al., "FedGTA: Topology-aware Averaging for Federated Graph Learning" (VLDB 2024). Each
organisation propagates its soft predictions over its own edges and tells the server their moments,
by which the server finds those alike, and how certain they are, by which it weighs them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedlap_app.methods.base import Parameters, Turn
from fedlap_app.methods.personal import Floats, Personal, likeness
from fedlap_app.methods.scores import LOSS_DECIMALS

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation

STEPS, ORDERS, RESTART = 5, 3, 0.5
"""Propagation steps, moments of each, and the share of the own prediction in each step."""


class FedGTA(Personal):
    """Averages within groups of organisations with alike predictions."""

    name: ClassVar[str] = "fedgta"
    summary: ClassVar[str] = "a mean for each, by topology"
    reads: ClassVar[frozenset[str]] = Personal.reads | {"similarity-threshold"}
    hints: ClassVar[tuple[str, ...]] = ("confidence", "moments")
    reveals: ClassVar[tuple[str, str, str]] = (
        "The server sees every organisation's model, moments of its propagated predictions and how "
        "certain they are, which tell the mix of its classes; a sealed sum has no single models.",
        "Organisations see the mean of those like them, so they learn most about these.",
        "No edge between organisations is used, so nobody learns of one.",
    )

    def hint(self, org: "Organisation", turn: Turn) -> Parameters:
        """Moments and certainty of the propagated predictions."""
        from fedlap_app.models.evaluation import log_probabilities_of
        from fedlap_app.models.propagation import Links, random_walk

        inputs = org.inputs(turn.task)
        first = np.exp(log_probabilities_of(org.model, inputs).astype(np.float64))
        links = Links.of(org.subgraph, relay=False)
        walk, degrees = random_walk(links).own, links.with_loops().degrees()
        soft, moments = first, []
        for _ in range(STEPS):
            soft = RESTART * first + (1.0 - RESTART) * (walk @ soft)
            centred = soft - soft.mean(axis=0)
            moments += [(centred**order).mean(axis=0) for order in range(2, ORDERS + 1)]
            moments.append(soft.mean(axis=0))
        entropy = -(soft * np.log(np.maximum(soft, 1e-12))).sum(axis=1)
        certain = degrees @ (np.log(soft.shape[1]) - entropy)
        # The server chose the model: with all digits it could read every prediction off a moment.
        told = np.concatenate(moments).round(LOSS_DECIMALS)
        return {"confidence": np.array([float(f"{certain:.2e}")]), "moments": told}

    def shares(self, hints: Sequence[Parameters]) -> Floats:
        """Certainty of those above the threshold of likeness, oneself always among them."""
        alike = likeness([hint["moments"] for hint in hints]) >= self.settings.similarity_threshold
        np.fill_diagonal(alike, True)
        certain = np.maximum([float(hint["confidence"][0]) for hint in hints], 1e-9)
        weights = alike * certain
        shares: Floats = weights / weights.sum(axis=1, keepdims=True)
        return shares
