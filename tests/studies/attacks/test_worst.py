import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.privacy.leakage import alpha_of, auc_of, precision_at, recall_at
from fedlap_app.studies.attacks.pairs import edge_pairs, other_pairs
from fedlap_app.studies.attacks.scores import curve_of, measure
from fedlap_app.studies.attacks.worst import attack_worst, worst_case


def random_graph(nodes, density, rng):
    """Edges are independent and as likely as `density`: what the theorem assumes."""
    upper = np.triu(rng.random((nodes, nodes)) < density, 1)
    return sp.csr_array((upper | upper.T).astype(float))


@pytest.mark.parametrize(
    ("nodes", "density", "vectors"),
    [(400, 0.1, 10), (600, 0.05, 20), (600, 0.05, 60), (1000, 0.02, 10), (1000, 0.04, 120),
     (1200, 0.02, 60)],
)  # fmt: skip
def test_the_attack_is_as_good_as_the_theorem_says(nodes, density, vectors):
    rng = np.random.default_rng([nodes, vectors])
    adjacency = random_graph(nodes, density, rng)
    attacker = worst_case(rng.standard_normal((nodes, vectors)), adjacency, density)
    scores, both = attack_worst(attacker, adjacency, rng)
    alpha = alpha_of(vectors, nodes, density)
    found = measure(scores, 0, resamples=20)
    assert found["auc"] == pytest.approx(auc_of(alpha), abs=0.02)
    assert found["tpr_at_fpr_0.01"] == pytest.approx(recall_at(0.01, alpha), abs=0.04)
    # An undirected edge shows in two rows, which the theorem leaves out: alpha counts twice.
    assert curve_of(both).auc == pytest.approx(auc_of(2 * alpha), abs=0.02)


def test_precision_and_recall_agree_with_the_corollary():
    nodes, density, vectors = 1200, 0.03, 40
    rng = np.random.default_rng(7)
    adjacency = random_graph(nodes, density, rng)
    attacker = worst_case(rng.standard_normal((nodes, vectors)), adjacency, density)
    curve = curve_of(attack_worst(attacker, adjacency, rng)[0])
    alpha = alpha_of(vectors, nodes, density)
    for recall in (0.1, 0.3, 0.5, 0.8):
        at = int(np.searchsorted(curve.recalls, recall))
        theory = precision_at(recall, alpha, density)
        assert curve.precisions(density)[at] == pytest.approx(theory, abs=0.03)


def test_the_ratio_is_the_formula_of_the_proof():
    rng = np.random.default_rng(2)
    rows, density = rng.standard_normal((40, 5)), 0.1
    adjacency = random_graph(40, density, rng)
    images = adjacency @ rows
    inverse = np.linalg.inv(density * (1 - density) * rows.T @ rows)
    mean = density * rows.sum(axis=0)
    expected = (images[:, None] - mean + rows[None] / 2) @ inverse
    expected = np.einsum("uvm,vm->uv", expected, rows)
    attacker = worst_case(rows, adjacency, density)
    sources, targets = np.divmod(np.arange(1600), 40)
    np.testing.assert_allclose(
        attacker.ratios(sources, targets).reshape(40, 40), expected, rtol=1e-8, atol=1e-8
    )


def test_more_vectors_than_nodes_find_every_edge():
    rng = np.random.default_rng(4)
    adjacency = random_graph(60, 0.1, rng)
    attacker = worst_case(rng.standard_normal((60, 90)), adjacency, 0.1)
    assert attacker.rank == 60
    assert curve_of(attack_worst(attacker, adjacency, rng)[0]).auc == 1.0


def test_pairs_are_all_pairs_or_a_part_without_edges():
    rng = np.random.default_rng(0)
    adjacency = random_graph(50, 0.2, rng)
    edges = set(zip(*edge_pairs(adjacency), strict=True))
    others = list(zip(*other_pairs(adjacency, rng), strict=True))
    assert len(set(others)) == len(others) == 50 * 49 - len(edges)
    part = list(zip(*other_pairs(adjacency, rng, most=300), strict=True))
    assert 150 < len(part) <= 300
    assert not edges & set(part)
    assert all(u != v for u, v in part)
