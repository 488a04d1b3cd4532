"""Steps against torch's optimiser classes."""

import pytest
import torch

from fedlap_app.errors import ProtocolError
from fedlap_app.models.optimizer import Optimizer
from fedlap_app.models.specs import TrainSpec


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


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_an_optimiser_goes_on_with_the_moments_of_another(name):
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(6, 5, 3, generator=generator)
    whole, parts = torch.zeros(5, 3), torch.zeros(5, 3)
    spec = TrainSpec(optimizer=name, learning_rate=0.05)
    rule = Optimizer([whole], spec)
    for gradient in gradients:
        rule.step([gradient])
    moments = {}
    for gradient in gradients:
        rule = Optimizer([parts], spec)
        if moments:
            rule.load_moments(moments)
        rule.step([gradient])
        moments = rule.moments()
    assert torch.equal(whole, parts)


def test_moments_of_another_model_are_refused():
    moments = Optimizer([torch.zeros(2)], TrainSpec()).moments()
    with pytest.raises(ProtocolError, match="does not fit"):
        Optimizer([torch.zeros(3)], TrainSpec()).load_moments(moments)
