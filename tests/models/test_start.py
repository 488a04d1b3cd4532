import numpy as np
import pytest
import torch
from torch import nn

from fedlap_app.models.start import linear, normal, uniform


def drawn(make):
    torch.manual_seed(5)
    return make().detach().numpy()


@pytest.mark.parametrize("shape", [(3, 7), (40, 25), (100, 256)])
def test_uniform_numbers_are_torchs(shape):
    own = drawn(lambda: uniform(0.125, *shape))
    theirs = drawn(lambda: torch.empty(shape).uniform_(-0.125, 0.125))
    assert np.abs(own - theirs).max() <= 2.0**-27


@pytest.mark.parametrize("shape", [(4, 8), (40, 20), (100, 256)])
def test_normal_numbers_are_torchs(shape):
    own = drawn(lambda: normal(0.05, *shape))
    theirs = drawn(lambda: 0.05 * torch.randn(shape))
    assert np.abs(own - theirs).max() <= 0.05 * 4e-6  # torch takes logarithms in float32


def test_normal_numbers_of_any_count():
    assert drawn(lambda: normal(1.0, 3, 7)).shape == (3, 7)
    many = drawn(lambda: normal(2.0, 100_001))
    assert abs(many.mean()) < 0.03
    assert many.std() == pytest.approx(2.0, rel=0.01)


def test_a_linear_layer_is_torchs():
    torch.manual_seed(3)
    own = linear(30, 20)
    torch.manual_seed(3)
    theirs = nn.Linear(30, 20)
    for one, other in zip(own.parameters(), theirs.parameters(), strict=True):
        assert (one - other).abs().max() <= 2.0**-25
