import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.privacy.density import Density, density_of, own_density
from fedlap_app.privacy.leakage import (
    RECALLS,
    alpha_of,
    auc_of,
    best_f1,
    false_alarm_of,
    kl_of,
    largest_p_plus_r,
    largest_sum,
    largest_vectors,
    largest_vectors_auc,
    precision_at,
    recall_at,
    recall_of,
    worst_case_auc,
)

CORA = Density(2708, 5278, 10556)


def threshold_of(recall, alpha):
    """Threshold gamma that finds a share of the edges: the inverse of `recall_of`."""
    return alpha / 2.0 - math.sqrt(alpha) * ndtri(recall)


def federation(name: str, *, directed: bool = False) -> list[Subgraph]:
    return load_federation(DataSpec(dataset=name, clients=2, partition="random", directed=directed))


def test_the_statistic_of_a_random_graph_is_distributed_as_the_theorem_says() -> None:
    nodes, vectors, density, trials = 4000, 40, 0.005, 3000
    rng = np.random.default_rng(1)
    Q, _ = np.linalg.qr(rng.standard_normal((nodes, vectors)))
    leverages = np.einsum("ij,ij->i", Q, Q)
    variance = density * (1 - density)
    assert leverages.mean() / variance == pytest.approx(alpha_of(vectors, nodes, density))
    v = int(np.argmin(abs(leverages - vectors / nodes)))
    weights = Q @ Q[v] / variance
    alpha = weights[v]
    assert alpha == pytest.approx(alpha_of(vectors, nodes, density), rel=0.02)
    found = {}
    for edge in (1.0, 0.0):
        rows = (rng.random((trials, nodes)) < density).astype(np.float64)
        rows[:, v] = edge
        # (U_u - mean of both hypotheses) Sigma^-1 Q_v'
        found[edge] = rows @ weights - density * weights.sum() - (0.5 - density) * alpha
    assert found[1.0].mean() == pytest.approx(alpha / 2, abs=0.1)
    assert found[0.0].mean() == pytest.approx(-alpha / 2, abs=0.1)
    assert found[1.0].var() == pytest.approx(alpha, rel=0.1)
    for threshold in (-1.0, 0.0, 1.0, 2.0):
        assert (found[1.0] > threshold).mean() == pytest.approx(
            recall_of(threshold, alpha), abs=0.035
        )
        assert (found[0.0] > threshold).mean() == pytest.approx(
            false_alarm_of(threshold, alpha), abs=0.035
        )


@pytest.mark.parametrize("recall", [0.1, 0.5, 0.9])
def test_precision_and_recall_are_those_of_drawn_ratios(recall: float) -> None:
    alpha, density, count = 4.0, 0.02, 2_000_000
    rng = np.random.default_rng(2)
    edges = rng.random(count) < density
    ratios = np.where(edges, alpha / 2, -alpha / 2) + math.sqrt(alpha) * rng.standard_normal(count)
    called = ratios > threshold_of(recall, alpha)
    assert called[edges].mean() == pytest.approx(recall, abs=0.01)
    assert edges[called].mean() == pytest.approx(precision_at(recall, alpha, density), abs=0.015)


def test_the_divergence_is_that_of_the_two_normal_distributions() -> None:
    alpha = alpha_of(100, CORA.nodes, CORA.true_p)
    grid = np.linspace(-60, 80, 200_001)
    edge, none = (norm(loc=side * alpha / 2, scale=math.sqrt(alpha)) for side in (1, -1))
    integrand = edge.pdf(grid) * (edge.logpdf(grid) - none.logpdf(grid))
    assert kl_of(alpha) == pytest.approx(np.trapezoid(integrand, grid), rel=1e-6)
    # Corollary cor:KL: r / (2 n p (1 - p)).
    p = CORA.true_p
    assert kl_of(alpha) == pytest.approx(100 / (2 * CORA.nodes * p * (1 - p)))


@pytest.mark.parametrize("alpha", [0.3, 2.0, 9.0])
def test_the_auc_is_the_area_under_the_curve(alpha: float) -> None:
    thresholds = np.linspace(60, -60, 400_001)
    recalls, alarms = recall_of(thresholds, alpha), false_alarm_of(thresholds, alpha)
    assert auc_of(alpha) == pytest.approx(np.trapezoid(recalls, alarms), abs=1e-6)
    for rate in (1e-2, 1e-3):
        assert recall_at(rate, alpha) == pytest.approx(np.interp(rate, alarms, recalls), abs=1e-4)
    sums = 2 * CORA.true_p * recalls
    f1 = sums / (CORA.true_p * (1 + recalls) + (1 - CORA.true_p) * alarms)
    assert best_f1(alpha, CORA.true_p) == pytest.approx(f1.max(), abs=1e-4)


def test_a_hundred_vectors_of_cora_show_almost_every_edge() -> None:
    assert worst_case_auc(100, CORA.nodes, CORA.true_p) == pytest.approx(0.9998, abs=5e-5)
    # An organisation of ten nodes has no more than ten independent equations to give.
    assert worst_case_auc(500, 10, 0.2) == worst_case_auc(10, 10, 0.2)


@pytest.mark.parametrize("bound", [0.55, 0.75, 0.9, 0.99])
def test_the_largest_number_of_vectors_for_an_auc_is_the_last_that_fits(bound: float) -> None:
    most = largest_vectors_auc(CORA.nodes, CORA.true_p, bound)
    assert worst_case_auc(most, CORA.nodes, CORA.true_p) <= bound
    assert worst_case_auc(most + 1, CORA.nodes, CORA.true_p) > bound


def test_the_ends_of_the_bound_on_the_auc() -> None:
    assert largest_vectors_auc(100, 0.1, 0.5) == 0
    assert largest_vectors_auc(100, 0.1, 1.0) == 100
    with pytest.raises(ConfigError, match="guessing"):
        largest_vectors_auc(100, 0.1, 0.4)


def test_the_inverse_of_the_recall() -> None:
    recalls = np.array([0.05, 0.3, 0.95])
    assert recall_of(threshold_of(recalls, 3.0), 3.0) == pytest.approx(recalls)


def test_the_largest_sum_is_that_of_a_search_over_thresholds() -> None:
    alpha, p = 6.0, 0.004
    thresholds = np.linspace(-10, 20, 400_001)
    recalls, alarms = recall_of(thresholds, alpha), false_alarm_of(thresholds, alpha)
    sums = recalls + p * recalls / (p * recalls + (1 - p) * alarms)
    inside = (recalls >= RECALLS[0]) & (recalls <= RECALLS[1])
    assert largest_sum(alpha, p) == pytest.approx(sums[inside].max(), abs=1e-6)


def test_more_vectors_never_hide_more() -> None:
    sums = [largest_p_plus_r(m, CORA.nodes, CORA.true_p) for m in range(0, 400, 7)]
    assert sums == sorted(sums)
    assert sums[0] == pytest.approx(RECALLS[1] + CORA.true_p)
    assert sums[-1] > 1.9


def test_the_largest_number_of_vectors_is_the_last_that_fits() -> None:
    most = largest_vectors(CORA.nodes, CORA.true_p)
    assert largest_p_plus_r(most, CORA.nodes, CORA.true_p) <= 1
    assert largest_p_plus_r(most + 1, CORA.nodes, CORA.true_p) > 1


def test_a_dense_graph_has_no_vector_to_give() -> None:
    # At a recall of .95 the precision is at least p.
    assert largest_vectors(50, 0.06) == 0


def test_a_hundred_thousand_vectors_neither_overflow_nor_warn() -> None:
    assert largest_p_plus_r(100_000, CORA.nodes, CORA.true_p) == pytest.approx(1.95)


@pytest.mark.parametrize("density", [0.0, 1.0, -0.1, math.nan])
def test_a_density_outside_0_to_1_is_refused(density: float) -> None:
    with pytest.raises(ConfigError, match="not between 0 and 1"):
        largest_p_plus_r(10, 100, density)


def searched(nodes: int, p: float) -> int:
    """The bound by another way: thresholds one by one, M one by one, scipy's distributions."""
    for vectors in range(1, nodes):
        alpha = vectors / (nodes * p * (1 - p))
        edge, none = (norm(loc=side * alpha / 2, scale=math.sqrt(alpha)) for side in (1, -1))
        thresholds = np.linspace(edge.isf(RECALLS[1]), edge.isf(RECALLS[0]), 2001)
        recalls, alarms = edge.sf(thresholds), none.sf(thresholds)
        if (recalls + p * recalls / (p * recalls + (1 - p) * alarms)).max() > 1:
            return vectors - 1
    return nodes


@pytest.mark.parametrize(
    ("name", "noted"), [("cora", 31), ("citeseer", 23), ("pubmed", 45), ("photo", 215)]
)
def test_the_bound_at_the_true_density(fedlap_data: Path, name: str, noted: int) -> None:
    density = density_of(federation(name))
    found = largest_vectors(density.nodes, density.true_p)
    assert found == searched(density.nodes, density.true_p)
    # The notes of the project say 31, 23, "about 45" and "about 215".
    assert found == pytest.approx(noted, rel=0.03)


def test_the_bound_of_chameleon_counts_its_symmetrised_edges(fedlap_data: Path) -> None:
    density = density_of(federation("chameleon"))
    assert (density.nodes, density.edges) == (2277, 31371)
    found = largest_vectors(density.nodes, density.true_p)
    assert found == searched(density.nodes, density.true_p) == 150


@pytest.mark.parametrize(
    ("name", "directed", "paper"),
    [("chameleon", True, 175), ("photo", False, 350), ("pubmed", False, 80)],
)
def test_the_bound_that_the_paper_reads_off_its_plots(
    fedlap_data: Path, name: str, directed: bool, paper: int
) -> None:
    density = density_of(federation(name, directed=directed))
    found = largest_vectors(density.nodes, density.paper_p)
    assert found == pytest.approx(paper, rel=0.1)


def test_the_density_counts_pairs_once_whatever_their_direction(fedlap_data: Path) -> None:
    undirected = density_of(federation("chameleon"))
    directed = density_of(federation("chameleon", directed=True))
    assert directed.edges == undirected.edges == 31371
    assert (directed.entries, undirected.entries) == (36051, 62742)


def test_the_true_density_is_the_share_of_connected_pairs() -> None:
    parts = federation("digits")
    density = density_of(parts)
    adjacency = np.zeros((density.nodes, density.nodes), dtype=bool)
    place = {name: i for i, name in enumerate(np.concatenate([part.ids for part in parts]))}
    for part in parts:
        names = np.concatenate([part.ids, part.external_ids])
        for source, target in part.edge_index.T:
            adjacency[place[names[source]], place[names[target]]] = True
    pairs = np.triu(adjacency | adjacency.T, 1).sum()
    total = math.comb(density.nodes, 2)
    assert density.true_p == pytest.approx(pairs / total)


def test_the_own_density_counts_pairs_within() -> None:
    part = federation("digits")[0]
    inside = {(min(a, b), max(a, b)) for a, b in part.edge_index.T if max(a, b) < part.num_nodes}
    pairs = {pair for pair in inside if pair[0] != pair[1]}
    assert own_density(part) == pytest.approx(len(pairs) / math.comb(part.num_nodes, 2))


def test_a_graph_without_edges_is_refused() -> None:
    part = federation("digits")[0]
    nothing: dict[str, Any] = {
        "edge_index": np.empty((2, 0), int),
        "edge_weight": np.empty(0),
        "external_ids": np.empty(0, "<U1"),
        "external_owners": np.empty(0, "<U1"),
    }
    with pytest.raises(DataError, match="no edges"):
        density_of([replace(part, **nothing)])
    # One pair of very many would be found where none was.
    assert 0 < own_density(replace(part, **nothing)) < 2 / math.comb(part.num_nodes, 2)
