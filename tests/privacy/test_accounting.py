"""Epsilon of noisy updates against closed forms and another accountant."""

import math
import sys

import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from scipy.stats import norm

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.privacy.accounting import NODE, ORGANISATION, Promise, Released, epsilon


def promise(noise, unit=ORGANISATION):
    return Promise(1.0, noise, 1e-5, 1, unit)


def delta_of(noise, eps):
    """The exact delta of one Gaussian release (Balle and Wang, 2018, theorem 8)."""
    return norm.cdf(0.5 / noise - eps * noise) - math.exp(eps) * norm.cdf(
        -0.5 / noise - eps * noise
    )


@pytest.mark.parametrize(("noise", "releases"), [(1.0, 1), (2.0, 1), (20.0, 100), (3.0, 7)])
def test_epsilon_is_that_of_the_closed_form(noise, releases):
    found = epsilon(noise, releases, 1e-5)
    assert delta_of(noise / math.sqrt(releases), found) == pytest.approx(1e-5, rel=1e-6)


def test_epsilon_of_noise_one_is_the_known_number():
    assert epsilon(1.0, 1, 1e-5) == pytest.approx(4.377, abs=1e-3)


def test_another_accountant_bounds_it_from_above():
    accountant = RdpAccountant()
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(10.0), 50))
    bound = accountant.get_epsilon(1e-5)
    assert 0.8 * bound < epsilon(10.0, 50, 1e-5) < bound


def test_all_runs_of_a_store_add_up(tmp_path):
    for noise in (4.0, 4.0, 2.0):
        Released(tmp_path, durable=True).add(promise(noise))
    total = Released(tmp_path, durable=True).total(promise(4.0))
    assert total["releases in all runs"] == 3
    assert total["epsilon of all runs"] == pytest.approx(epsilon((2 / 16 + 1 / 4) ** -0.5, 1, 1e-5))
    new = Released(tmp_path / "new", durable=True)
    assert new.total(promise(4.0))["epsilon of all runs"] == 0.0


def test_a_node_has_a_part_in_its_organisations_releases(tmp_path):
    """Two updates of one node more or less are twice the norm apart; its own gradients once."""
    released = Released(tmp_path, durable=True)
    for unit in (ORGANISATION, NODE, NODE):
        released.add(promise(5.0, unit))
    of_node, of_all = (released.total(promise(1.0, unit)) for unit in (NODE, ORGANISATION))
    assert of_node["releases in all runs"] == 3
    assert of_node["epsilon of all runs"] == pytest.approx(epsilon((6 / 25) ** -0.5, 1, 1e-5))
    assert of_all["releases in all runs"] == 1
    assert of_all["epsilon of all runs"] == pytest.approx(epsilon(5.0, 1, 1e-5))


def test_a_count_of_an_earlier_release_is_gone_on_with(tmp_path):
    (tmp_path / "noised.json").write_text('{"releases": 2, "inverse-squares": 0.5}')
    Released(tmp_path, durable=False).add(promise(2.0, NODE))
    total = Released(tmp_path, durable=False).total(promise(2.0, ORGANISATION))
    assert total["releases in all runs"] == 2


@pytest.mark.parametrize("content", ["{}", '{"releases": "x", "inverse-squares": 1.0}', "["])
def test_a_damaged_count_is_refused(tmp_path, content):
    (tmp_path / "noised.json").write_text(content)
    with pytest.raises(RunError, match=r"noised\.json"):
        Released(tmp_path, durable=False).add(promise(1.0))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting.gaussian_mechanism", None)
    with pytest.raises(ConfigError, match="extra dp"):
        Promise(1.0, 1.0, 1e-5, 1).of(3)
    assert Promise(1.0, 1.0, 1e-5, 1).of(0)["epsilon"] == 0.0
