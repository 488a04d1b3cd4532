import numpy as np
import pytest
import torch

from fedlap_app.errors import ConfigError
from fedlap_app.models.specs import StructureSpec
from fedlap_app.models.structure import START_SPREAD, build_structure, rayleigh_quotient

SPEC = StructureSpec(rank=5, width=16, num_classes=3, hidden=(8,), dropout=0.0)


def test_the_gradient_of_the_regulariser_is_the_closed_form():
    generator = torch.Generator().manual_seed(0)
    W = torch.randn(6, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    values = torch.rand(6, generator=generator, dtype=torch.float64)
    quotient = rayleigh_quotient(W, values)
    (gradient,) = torch.autograd.grad(quotient, W)
    # d/dW tr(W'LW)/tr(W'W) = 2 (L - quotient I) W / tr(W'W)
    closed = 2 * (values - quotient)[:, None] * W / W.square().sum()
    torch.testing.assert_close(gradient, closed, rtol=1e-12, atol=1e-14)


def test_the_quotient_is_the_trace_form_and_ignores_the_norm_of_w():
    W = torch.randn(6, 4, dtype=torch.float64)
    values = torch.rand(6, dtype=torch.float64)
    trace = torch.trace(W.T @ torch.diag(values) @ W) / torch.trace(W.T @ W)
    torch.testing.assert_close(rayleigh_quotient(W, values), trace)
    torch.testing.assert_close(rayleigh_quotient(7 * W, values), trace)
    assert values.min() <= trace <= values.max()


def test_the_prediction_is_what_the_formula_says():
    model = build_structure(SPEC, 0).eval()
    basis = torch.randn(7, 5)
    W = model.W.detach().numpy()
    features = np.maximum(basis.numpy() @ W, 0)
    centred = features - features.mean(axis=1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    first, second = model.layers
    hidden = np.maximum(normal @ first.weight.detach().numpy().T + first.bias.detach().numpy(), 0)
    logits = hidden @ second.weight.detach().numpy().T + second.bias.detach().numpy()
    np.testing.assert_allclose(model(basis).detach().numpy(), logits, rtol=1e-4, atol=1e-5)


def test_unit_norm_makes_the_size_of_w_irrelevant():
    spec = StructureSpec(rank=5, width=4, num_classes=2, unit_norm=True, norm=False, dropout=0.0)
    model = build_structure(spec, 1).eval()
    basis = torch.randn(3, 5)
    before = model(basis)
    with torch.no_grad():
        model.W *= 10
    torch.testing.assert_close(model(basis), before)


def test_the_start_is_seeded_and_small():
    first, again, other = (build_structure(SPEC, seed).W for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert float(first.detach().std()) == pytest.approx(START_SPREAD, rel=0.3)


@pytest.mark.parametrize("changes", [{"rank": 0}, {"hidden": (0,)}, {"activation": "sigmoid"}])
def test_impossible_models_are_refused(changes):
    facts = {"rank": 5, "width": 4, "num_classes": 2, **changes}
    with pytest.raises(ConfigError):
        StructureSpec(**facts)
