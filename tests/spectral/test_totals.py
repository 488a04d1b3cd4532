import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.errors import ProtocolError
from fedlap_app.spectral.totals import LENGTH, Totals, contribution


@pytest.mark.parametrize("weighted", [False, True])
def test_totals_are_those_of_the_whole_graph(graph, federate, weighted):
    rng = np.random.default_rng(0)
    A = graph(rng, 40, 0.2, weighted=weighted, directed=True)
    totals = federate(A, rng.integers(0, 4, 40), 4).totals()
    out, into = A.sum(axis=1), A.sum(axis=0)
    assert totals.nodes == 40
    assert totals.degree == pytest.approx(out.sum())
    assert totals.mean_degree == pytest.approx(out.mean())
    assert totals.degree_squares == pytest.approx((out**2).sum())
    assert totals.weight_squares == pytest.approx((A.data**2).sum())
    assert totals.out_limit / 2 <= out.max() < totals.out_limit
    assert totals.in_limit / 2 <= into.max() < totals.in_limit


def test_counts_survive_noise_and_lie_between_zero_and_one():
    rows = sp.csr_array(np.ones((3, 20_000)))
    mine = contribution(rows)
    assert mine.min() >= 0
    assert mine.max() <= 1
    noisy = 7 * mine + 1e-8 * np.random.default_rng(0).standard_normal(LENGTH)
    totals = Totals.from_sums(noisy)
    assert totals.nodes == 21
    assert totals.degree == pytest.approx(420_000, abs=1e-6)
    assert totals.out_limit == 2.0**15


def test_graph_without_edges():
    totals = Totals.from_sums(contribution(sp.csr_array((5, 5))))
    assert (totals.nodes, totals.degree, totals.out_limit) == (5, 0.0, 1.0)


@pytest.mark.parametrize("sums", [np.zeros(3), np.full(LENGTH, np.nan)])
def test_broken_sums_are_refused(sums):
    with pytest.raises(ProtocolError, match="totals"):
        Totals.from_sums(sums)
