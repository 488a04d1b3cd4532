"""Adam and gradient descent as plain steps whose state the caller may keep."""

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from fedlap_app.errors import ProtocolError
from fedlap_app.models.specs import TrainSpec

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Optimizer:
    """Parameters, their moments and the rule that moves them.

    torch's functional form: its optimiser classes import the compiler, 1.4 s in a new process.
    """

    def __init__(self, parameters: Iterable[Tensor], spec: TrainSpec) -> None:
        self.spec = spec
        self.parameters = list(parameters)
        self.first = [torch.zeros_like(value) for value in self.parameters]
        self.second = [torch.zeros_like(value) for value in self.parameters]
        self.steps = [torch.zeros((), device=value.device) for value in self.parameters]

    def moments(self) -> dict[str, NDArray[np.float32]]:
        """Copy of the state, by which another optimiser of the same parameters goes on."""
        return {
            f"{kind}.{number}": value.cpu().numpy().copy()
            for kind, values in self._state()
            for number, value in enumerate(values)
        }

    def load_moments(self, moments: Mapping[str, NDArray[np.float32]]) -> None:
        """Go on with the state of another optimiser of the same parameters."""
        for kind, values in self._state():
            for number, value in enumerate(values):
                kept = moments.get(f"{kind}.{number}")
                if kept is None or kept.shape != tuple(value.shape):
                    raise ProtocolError(
                        "The kept state of the optimiser does not fit the model: "
                        "start the run again."
                    )
                value.copy_(torch.tensor(kept))

    def _state(self) -> tuple[tuple[str, list[Tensor]], ...]:
        return ("first", self.first), ("second", self.second), ("steps", self.steps)

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """Move the parameters by one step against the gradients."""
        # The fused kernel reads a gradient as if it lay in memory like its parameter.
        grads = [gradient.contiguous() for gradient in gradients]
        if self.spec.optimizer == "sgd":
            sgd(
                self.parameters,
                grads,
                [None] * len(grads),
                foreach=True,
                weight_decay=self.spec.weight_decay,
                momentum=0.0,
                lr=self.spec.learning_rate,
                dampening=0.0,
                nesterov=False,
                maximize=False,
            )
            return
        adam(
            self.parameters,
            grads,
            self.first,
            self.second,
            [],
            self.steps,
            fused=True,
            amsgrad=False,
            beta1=BETA1,
            beta2=BETA2,
            lr=self.spec.learning_rate,
            weight_decay=self.spec.weight_decay,
            eps=EPSILON,
            maximize=False,
        )
