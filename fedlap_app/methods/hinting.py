"""Methods whose organisations tell the server something of themselves beside their models."""

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fedlap_app.errors import RunError
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import Parameters, Records, Turn, Update
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.models.options import AveragingOptions

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation

HINT = "hint"
"""The record of what they tell."""


class Hinting(FedAvg):
    """Federated averaging with a hint of every organisation."""

    reads: ClassVar[frozenset[str]] = FedAvg.reads - (
        keys_of(AveragingOptions) - {"min-clients", "straggler-timeout"}
    )
    weighs_branches: ClassVar[bool] = False
    steps_at_server: ClassVar[bool] = False
    single_updates: ClassVar[bool] = True
    hints: ClassVar[tuple[str, ...]]
    """Names of the arrays of a hint."""

    @abstractmethod
    def hint(self, org: "Organisation", turn: Turn) -> Parameters:
        """What an organisation tells of itself beside its trained model."""

    def train(self, org: "Organisation", received: Records, turn: Turn) -> Update:
        """Train, and tell about the trained model."""
        from fedlap_app.models.determinism import one_thread

        update = super().train(org, received, turn)
        with one_thread():
            hint = self.hint(org, turn)
        return replace(update, records={**update.records, HINT: hint})

    def hint_of(self, member: str, records: Records) -> Parameters:
        """What a member told, checked."""
        hint = records.get(HINT, {})
        finite = all(np.isfinite(value).all() for value in hint.values())
        if sorted(hint) != sorted(self.hints) or not finite:
            raise RunError(
                f"{member} returned no {', '.join(self.hints)} of finite numbers: let all "
                "organisations run one version"
            )
        return hint
