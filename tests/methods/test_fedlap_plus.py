"""FedLap+ through the real protocol, on a graph whose structure crosses the banks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedlap_app.flower.grids.in_process import run_in_process
from fedlap_app.graphs.federation import load_federation
from fedlap_app.methods.base import Schema
from fedlap_app.methods.registry import method_class
from fedlap_app.models.fusion import smooth_cross_entropy
from fedlap_app.models.tensors import GraphTensors
from fedlap_app.models.training import cross_entropy, loss_of
from fedlap_app.settings import Settings
from fedlap_app.spectral.certificate import Certificate
from fedlap_app.sums.job.bases import BasisFacts, FinishedBasis


class Silent:
    def step_done(self, number, steps):
        """Nothing to show."""

    def round_done(self, number, rounds, totals):
        """Nothing to show."""


SHAPE = Schema(12, 3)


def method_of(settings):
    return method_class(settings.method).of(settings)


def attach(tensors, basis, settings):
    return method_of(settings).with_basis(tensors, basis)


def basis_of(rows, columns, nodes):
    generator = np.random.default_rng(0)
    facts = BasisFacts("j", "m", "s", "d", ("a", "b"), rows, 1, 1, nodes=nodes)
    certificate = Certificate(0.0, 0.0, columns, columns, 1, 1, 1, 1.0)
    U = generator.standard_normal((rows, columns)) / np.sqrt(nodes)
    return FinishedBasis(U, np.linspace(0.1, 1.0, columns), certificate, facts)


@pytest.fixture
def settings():
    return replace(
        Settings(), model="decoupled", accounts=240, clients=3, rounds=2, local_epochs=1,
        hidden="8", vectors=12, rank=6, block=4, structure_width=8, column_weights="none",
        branch_loss=0.0, fusion="sum",
    )  # fmt: skip


@pytest.fixture
def tensors(settings):
    part = load_federation(settings.data_spec)[0]
    spec = settings.model_spec(part.num_features, part.num_classes)
    return GraphTensors.from_subgraph(part, spec)


def test_rows_are_scaled_and_a_short_basis_is_filled_with_zeros(settings, tensors):
    basis = basis_of(tensors.num_nodes, 4, nodes=400)
    attached = attach(tensors, basis, settings)
    assert attached.basis.shape == (tensors.num_nodes, 6)
    np.testing.assert_allclose(attached.basis[:, :4].numpy(), 20 * basis.U, rtol=1e-6)
    assert not attached.basis[:, 4:].any()
    np.testing.assert_allclose(attached.eigenvalues.numpy(), basis.eigenvalues, rtol=1e-6)
    model = method_of(settings).model(SHAPE, 0).eval()
    squares = model.structure.W.detach()[:4].square().sum(dim=1).numpy()
    quotient = float((basis.eigenvalues * squares).sum() / squares.sum())
    expected = float(cross_entropy(model, attached).detach()) + quotient
    assert float(smooth_cross_entropy(1.0)(model, attached).detach()) == pytest.approx(expected)


def test_columns_can_be_weighted_by_their_eigenvalues(settings, tensors):
    basis = basis_of(tensors.num_nodes, 6, nodes=400)
    plain = attach(tensors, basis, settings).basis
    weighted = attach(tensors, basis, replace(settings, column_weights="eigenvalue")).basis
    np.testing.assert_allclose(weighted.numpy(), plain.numpy() * basis.eigenvalues, rtol=1e-5)


def test_columns_can_be_weighted_by_the_roots_of_their_eigenvalues(settings, tensors):
    basis = basis_of(tensors.num_nodes, 6, nodes=400)
    plain = attach(tensors, basis, settings).basis
    weighted = attach(tensors, basis, replace(settings, column_weights="root")).basis
    roots = np.sqrt(basis.eigenvalues)
    np.testing.assert_allclose(weighted.numpy(), plain.numpy() * roots, rtol=1e-5)


def test_columns_can_be_weighted_by_the_heat_kernel(settings, tensors):
    basis = basis_of(tensors.num_nodes, 6, nodes=400)
    plain = attach(tensors, basis, settings).basis
    chosen = replace(settings, column_weights="diffusion", diffusion=3.0)
    heat = np.exp(-3.0 * (basis.eigenvalues - 0.1))
    np.testing.assert_allclose(
        attach(tensors, basis, chosen).basis.numpy(), plain.numpy() * heat, rtol=1e-5
    )


def test_logits_are_added_and_the_feature_model_can_be_left_out(settings, tensors):
    data = attach(tensors, basis_of(tensors.num_nodes, 6, 400), settings)
    model = method_of(settings).model(SHAPE, 0).eval()
    both = model(data)
    torch.testing.assert_close(both, model.features(data) + model.structure(data.basis))
    alone = method_of(replace(settings, model="none")).model(SHAPE, 0).eval()
    torch.testing.assert_close(alone(data), alone.structure(data.basis))


def test_the_objective_adds_lambda_times_the_quotient(settings, tensors):
    data = attach(tensors, basis_of(tensors.num_nodes, 6, 400), settings)
    model = method_of(settings).model(SHAPE, 0).eval()
    squares = model.structure.W.detach().square().sum(dim=1)
    quotient = float((data.eigenvalues * squares).sum() / squares.sum())
    expected = float(cross_entropy(model, data).detach()) + 2.5 * quotient
    assert float(smooth_cross_entropy(2.5)(model, data).detach()) == pytest.approx(expected, 1e-5)
    averaging = replace(settings, method="fedavg")
    plain = method_of(averaging).model(SHAPE, 0).eval()
    torch.testing.assert_close(method_of(averaging).loss(plain, data), cross_entropy(plain, data))


def test_a_second_run_reuses_the_basis_and_gives_the_same_bits(settings, own_home):
    first = run_in_process(settings, Silent())
    again = run_in_process(settings, Silent())
    assert first["loss"] == again["loss"]
    assert first["accuracy"] == again["accuracy"]


@pytest.mark.parametrize("method", ["fedlap+", "fedlap"])
def test_a_refreshed_basis_changes_no_bit_of_the_result(settings, own_home, method):
    settings = replace(settings, method=method, backend="mask")
    first = run_in_process(settings, Silent())
    fresh = run_in_process(replace(settings, refresh_basis=True), Silent())
    assert fresh["loss"] == first["loss"]
    assert run_in_process(settings, Silent())["loss"] == first["loss"]


def test_the_structure_of_the_whole_graph_is_worth_two_points():
    settings = replace(
        Settings(),
        accounts=800,
        clients=4,
        vectors=60,
    )
    together = run_in_process(settings, Silent())["accuracy"]["test"]
    average = run_in_process(replace(settings, method="fedavg"), Silent())["accuracy"]["test"]
    central = run_in_process(replace(settings, method="central"), Silent())["accuracy"]["test"]
    assert together >= average + 0.02
    assert together >= central - 0.03


def test_each_branch_can_have_a_loss_of_its_own(settings, tensors):
    attached = attach(tensors, basis_of(tensors.num_nodes, 6, nodes=400), settings)
    model = method_of(settings).model(SHAPE, 0).eval()
    together = method_of(settings).loss(model, attached)
    apart = method_of(replace(settings, branch_loss=0.5)).loss(model, attached)
    own = [loss_of(logits, attached) for logits in model.branches(attached)]
    assert len(own) == 2
    torch.testing.assert_close(apart - together, 0.5 * (own[0] + own[1]))
