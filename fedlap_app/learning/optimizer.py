"""Adam and gradient descent as plain steps whose state the caller may keep."""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam
from torch.optim.sgd import sgd

from fedlap_app.learning.specs import TrainSpec

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

    @torch.no_grad()
    def step(self, gradients: Iterable[Tensor]) -> None:
        """Move the parameters by one step against the gradients."""
        grads = list(gradients)
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
