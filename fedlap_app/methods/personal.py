"""Averages of one's own: every organisation gets a mean in which those like it weigh more."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import RunError
from fedlap_app.knobs import keys_of
from fedlap_app.methods.base import MODEL, Parameters, Records, State, Turn, Update
from fedlap_app.methods.fedavg import FedAvg
from fedlap_app.models.options import AveragingOptions

if TYPE_CHECKING:
    from fedlap_app.methods.organisation import Organisation

HINT = "hint"
"""The record by which the server finds out who is like whom."""

Floats = NDArray[np.float64]


class Personal(FedAvg):
    """Federated averaging with a mean for each organisation."""

    reads: ClassVar[frozenset[str]] = FedAvg.reads - (
        keys_of(AveragingOptions) - {"min-clients", "straggler-timeout"}
    )
    own_models: ClassVar[bool] = True
    weighs_branches: ClassVar[bool] = False
    steps_at_server: ClassVar[bool] = False
    single_updates: ClassVar[bool] = True
    hints: ClassVar[tuple[str, ...]]
    """Names of the arrays of a hint."""

    @abstractmethod
    def hint(self, org: "Organisation", turn: Turn) -> Parameters:
        """What an organisation tells of itself beside its trained model."""

    @abstractmethod
    def shares(self, hints: Sequence[Parameters]) -> Floats:
        """How much each model counts (columns) in the mean of each organisation (rows)."""

    def stays(self, name: str) -> bool:
        """Whether a parameter is each organisation's own and in no mean."""
        del name
        return False

    def train(self, org: "Organisation", received: Records, turn: Turn) -> Update:
        """Train, and tell about the trained model."""
        from fedlap_app.models.determinism import one_thread

        update = super().train(org, received, turn)
        with one_thread():
            hint = self.hint(org, turn)
        return replace(update, records={**update.records, HINT: hint})

    def send(self, state: State, member: str) -> Records:
        """The member's own mean; before the first round the one start."""
        own: Mapping[str, Parameters] = state.rest or {}
        return {MODEL: own.get(member, state.model)}

    def join(self, state: State, mean: Parameters, updates: Mapping[str, Records]) -> State:
        """A mean for each organisation that answered; the others keep theirs."""
        names = sorted(updates)
        hints = [self._hint_of(name, updates[name]) for name in names]
        models = [updates[name][MODEL] for name in names]
        means = {
            name: self._mixed(share, models, at)
            for at, (name, share) in enumerate(zip(names, self.shares(hints), strict=True))
        }
        return State(mean, {**(state.rest or {}), **means})

    def _mixed(self, share: Floats, models: Sequence[Parameters], at: int) -> Parameters:
        return {
            name: own if self.stays(name) else _mean(share, [model[name] for model in models])
            for name, own in models[at].items()
        }

    def _hint_of(self, member: str, records: Records) -> Parameters:
        hint = records.get(HINT, {})
        finite = all(np.isfinite(value).all() for value in hint.values())
        if sorted(hint) != sorted(self.hints) or not finite:
            raise RunError(
                f"{member} returned no {', '.join(self.hints)} of finite numbers: let all "
                "organisations run one version"
            )
        return hint


def likeness(vectors: Sequence[NDArray[Any]]) -> Floats:
    """Cosines between vectors; of a zero vector 0."""
    rows = np.stack([np.asarray(vector, dtype=np.float64).ravel() for vector in vectors])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0.0)
    cosines: Floats = unit @ unit.T
    return cosines


def _mean(share: Floats, values: Sequence[NDArray[Any]]) -> NDArray[np.float32]:
    summed = sum(part * value.astype(np.float64) for part, value in zip(share, values, strict=True))
    return np.asarray(summed, dtype=np.float32)
