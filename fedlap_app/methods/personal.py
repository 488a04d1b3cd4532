"""Averages of one's own: every organisation gets a mean in which those like it weigh more."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.methods.base import MODEL, Parameters, Records, State
from fedlap_app.methods.hinting import Hinting

Floats = NDArray[np.float64]


class Personal(Hinting):
    """Federated averaging with a mean for each organisation."""

    own_models: ClassVar[bool] = True

    @abstractmethod
    def shares(self, hints: Sequence[Parameters]) -> Floats:
        """How much each model counts (columns) in the mean of each organisation (rows)."""

    def stays(self, name: str) -> bool:
        """Whether a parameter is each organisation's own and in no mean."""
        del name
        return False

    def send(self, state: State, member: str) -> Records:
        """The member's own mean; before the first round the one start."""
        own: Mapping[str, Parameters] = state.rest or {}
        return {MODEL: own.get(member, state.model)}

    def join(self, state: State, mean: Parameters, updates: Mapping[str, Records]) -> State:
        """A mean for each organisation that answered; the others keep theirs."""
        names = sorted(updates)
        hints = self.hints_of(updates)
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
