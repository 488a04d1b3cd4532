"""Dense and sparse features against torch's LayerNorm."""

import numpy as np
import pytest
import scipy.sparse
import torch

from fedlap_app.models.determinism import seeded
from fedlap_app.models.features import DenseFeatures, SparseFeatures, features_on

CPU = torch.device("cpu")


def _sparse(density):
    rng = np.random.default_rng(0)
    drawn = scipy.sparse.random_array((20, 60), density=density, rng=rng, format="csr")
    return drawn.astype(np.float32)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(("density", "form"), [(0.03, SparseFeatures), (0.5, DenseFeatures)])
def test_products_equal_those_of_layer_norm(normalise, density, form):
    raw = _sparse(density)
    weight = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    twin = weight.detach().clone().requires_grad_()
    features = features_on(raw, normalise=normalise, device=CPU)
    assert isinstance(features, form)
    x = torch.from_numpy(raw.toarray())
    reference = (torch.nn.functional.layer_norm(x, (60,)) if normalise else x) @ twin
    torch.testing.assert_close(features.times(weight), reference, rtol=1e-4, atol=1e-4)
    features.times(weight).square().sum().backward()
    reference.square().sum().backward()
    torch.testing.assert_close(weight.grad, twin.grad, rtol=1e-4, atol=1e-3)


def test_a_constant_row_becomes_zero():
    features = features_on(np.full((2, 3), 5.0, np.float32), normalise=True, device=CPU)
    assert torch.equal(features.times(torch.eye(3)), torch.zeros(2, 3))


def test_no_features():
    features = features_on(np.zeros((4, 0), np.float32), normalise=True, device=CPU)
    assert features.times(torch.zeros(0, 3)).shape == (4, 3)


@pytest.mark.parametrize("density", [0.03, 0.5])
def test_dropout_leaves_the_mean_and_drops_only_entries(density):
    raw = _sparse(density)
    features = features_on(raw, normalise=True, device=CPU)
    whole = features.times(torch.eye(60))
    with seeded(0):
        drawn = torch.stack([features.times(torch.eye(60), 0.5) for _ in range(400)])
    empty = torch.from_numpy(raw.toarray() == 0)
    torch.testing.assert_close(drawn[7][empty], whole[empty])
    # Each raw entry is doubled or dropped: its mean over 400 draws has the deviation entry / 20.
    raw_entry = (whole + features.shift).abs()
    assert ((drawn.mean(dim=0) - whole).abs() <= 0.25 * raw_entry + 1e-4).all()
