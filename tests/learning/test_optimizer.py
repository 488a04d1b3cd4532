"""Steps against torch's optimiser classes."""

import pytest
import torch

from fedlap_app.learning.optimizer import Optimizer
from fedlap_app.learning.specs import TrainSpec


@pytest.mark.parametrize(
    ("name", "reference"), [("adam", torch.optim.Adam), ("sgd", torch.optim.SGD)]
)
def test_steps_equal_those_of_torch(name, reference):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(5, 3, generator=generator)
    own, theirs = start.clone().requires_grad_(), start.clone().requires_grad_()
    rule = Optimizer([own], TrainSpec(optimizer=name, learning_rate=0.05, weight_decay=0.01))
    twin = reference([theirs], lr=0.05, weight_decay=0.01)
    for _ in range(5):
        gradient = torch.randn(5, 3, generator=generator)
        rule.step([gradient])
        theirs.grad = gradient
        twin.step()
    torch.testing.assert_close(own, theirs)
