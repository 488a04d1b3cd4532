"""Methods whose organisations tell the server something of themselves beside their models."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import RunError
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import Parameters, Records, Turn, Update
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.models.options import AveragingOptions

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation

HINT = "hint"
"""The record of what they tell."""
LARGEST = 1e15
"""What no number of it may reach."""


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

    def hints_of(self, updates: Mapping[str, Records]) -> list[Parameters]:
        """What the members told, in the order of their names, checked."""
        found: list[Parameters] = []
        for member in sorted(updates):
            hint = updates[member].get(HINT, {})
            fit = sorted(hint) == sorted(self.hints) and all(map(_is_hint, hint.values()))
            if fit and found:
                fit = all(hint[name].shape == value.shape for name, value in found[0].items())
            if not fit:
                raise RunError(
                    f"{member} returned no {', '.join(self.hints)} of finite numbers, as many as "
                    "the others: let all organisations run one version"
                )
            found.append(hint)
        return found


def _is_hint(value: NDArray[Any]) -> bool:
    """Whether an array is some numbers that products of two can hold."""
    is_row = value.ndim == 1 and value.size > 0 and value.dtype.kind == "f"
    return bool(is_row and (np.abs(value) < LARGEST).all())
