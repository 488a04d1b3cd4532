"""Whole phases: what comes out is what the whole matrix gives."""

import numpy as np
import pytest

from fedlap_app.graphs.graph import join
from fedlap_app.spectral.start import start_block
from tests.spectral import reference

from .conftest import random_parts


def whole(phase):
    """Adjacency matrix in the order of the gathered rows."""
    joined = join(phase.parts)
    ids = np.concatenate([part.ids for part in phase.parts])
    order = np.argsort(joined.ids)
    at = order[np.searchsorted(joined.ids[order], ids)]
    A = joined.out_adjacency()
    if joined.directed and phase.spec.program.operator != "directed":
        A = A.maximum(joined.in_adjacency()).tocsr()
    return A[at][:, at]


def starts(phase):
    """The start vectors of all organisations, which only a simulation can know."""
    nodes = sum(part.num_nodes for part in phase.parts)
    return np.vstack(
        [
            start_block(
                phase.make_secrets(part.name).organisation,
                "simulation 0",
                part.num_nodes,
                min(phase.spec.program.block, phase.spec.program.vectors),
                nodes,
            )
            for part in phase.parts
        ]
    )


@pytest.mark.parametrize("backend", ["mask", "plain"])
@pytest.mark.parametrize("solver", ["block-lanczos", "dcgs2", "arnoldi"])
def test_the_basis_is_that_of_an_unpartitioned_run(make_phase, backend, solver):
    phase = make_phase(backend=backend, solver=solver)
    phase.run()
    U, values = phase.gathered()
    L = reference.whole_operator("sym", whole(phase))
    start = starts(phase)
    Q = reference.krylov(L, start if solver == "block-lanczos" else start[:, :1], 12)
    ritz, V = reference.rayleigh_ritz(L, Q, 12, "smallest")
    assert abs(np.linalg.norm(V.T @ U) ** 2 / 12 - 1) < 1e-6
    np.testing.assert_allclose(values, ritz, atol=1e-6)
    assert np.linalg.norm(np.eye(12) - U.T @ U, 2) < 1e-9


@pytest.mark.parametrize("operator", ["laplacian", "adjacency", "regularised", "rw"])
def test_a_full_krylov_space_gives_true_eigenvalues(make_phase, operator):
    phase = make_phase(operator=operator, vectors=40, block=8)
    phase.run()
    U, values = phase.gathered()
    A = whole(phase)
    L = reference.whole_operator(operator, A)
    dense = L @ np.eye(A.shape[0])
    true = np.linalg.eigvalsh((dense + dense.T) / 2)
    distance = np.abs(values[:, None] - true).min(axis=1)
    assert distance.max() < 1e-6
    if operator == "rw":
        U = U * np.sqrt(A.sum(axis=1) + 1)[:, None]
    assert np.abs(L @ U - U * values).max() < 1e-6


def test_directed_graphs_take_two_products_a_step(make_phase):
    phase = make_phase(operator="directed", directed=True, keep="largest", vectors=40, rank=3)
    phase.run()
    A = whole(phase).toarray()
    expected = np.linalg.svd(A, compute_uv=False)[:3] ** 2
    np.testing.assert_allclose(phase.gathered()[1], expected, atol=1e-6)


def test_a_directed_graph_is_made_symmetric_for_other_operators(make_phase):
    phase = make_phase(operator="sym", directed=True, vectors=40, rank=5)
    phase.run()
    dense = reference.whole_operator("sym", whole(phase)) @ np.eye(40)
    np.testing.assert_allclose(phase.gathered()[1], np.linalg.eigvalsh(dense)[:5], atol=1e-6)


@pytest.mark.parametrize("clients", [2, 3, 21, 50])
def test_any_number_of_organisations(make_phase, clients):
    parts = random_parts(nodes=2 * clients + 20, clients=clients, edges=4 * clients + 40)
    phase = make_phase(parts, vectors=4)
    phase.run()
    U, _ = phase.gathered()
    assert np.linalg.norm(np.eye(4) - U.T @ U, 2) < 1e-9


@pytest.mark.parametrize("layout", ["full", "boundary"])
@pytest.mark.parametrize("hide_topology", [True, False])
def test_layout_and_topology_do_not_change_the_basis(make_phase, layout, hide_topology):
    # Organisations 3 and 4 share no edge with anyone.
    parts = random_parts(nodes=30, clients=3) + random_parts(nodes=9, clients=1, edges=12, seed=1)
    parts[-1] = _renamed(parts[-1])
    plain = make_phase(parts)
    plain.run()
    other = make_phase(parts, layout=layout, hide_topology=hide_topology)
    other.run()
    U, V = plain.gathered()[0], other.gathered()[0]
    assert np.abs(U - V).max() < 1e-9
    sums = [len(request.own) for name, request, _ in other.log if request.kind == "sums"]
    alone = [len(r.own) for n, r, _ in other.log if r.kind == "sums" and n == "solo"]
    assert max(sums) > 0
    assert (max(alone) == 0) == (not hide_topology)


def _renamed(part):
    from dataclasses import replace

    return replace(part, name="solo", ids=np.array([f"s{i}" for i in range(part.num_nodes)]))


def test_round_trips_of_the_default_solver(make_phase):
    phase = make_phase(graph={"nodes": 150, "edges": 600}, vectors=100, block=10)
    phase.run()
    kinds = [request.kind for name, request, _ in phase.log if name == "org-00"]
    assert kinds == ["hello", "cards", "pairs", *["sums"] * 12, "share"]
    assert phase.spec.rounds() == 13


def test_all_hold_the_same_eigenvalues_and_a_certificate(make_phase):
    phase = make_phase(rank=5)
    phase.run()
    bases = phase.bases()
    values = [basis.eigenvalues for basis in bases.values()]
    assert all(np.array_equal(values[0], other) for other in values)
    U, _ = phase.gathered()
    certificate = bases["org-01"].certificate
    assert (certificate.vectors, certificate.rank, certificate.round_trips) == (12, 5, 1)
    assert certificate.orthogonality < 1e-9
    L = reference.whole_operator("sym", whole(phase))
    residual = np.linalg.norm(L @ U - U * values[0], axis=0).max()
    assert certificate.residual_max == pytest.approx(residual, rel=1e-3)


def test_the_same_seed_gives_the_same_bits_and_another_one_does_not(make_phase):
    runs = [make_phase(seed=seed) for seed in (0, 0, 1)]
    for phase in runs:
        phase.run()
    first, again, other = (phase.gathered()[0] for phase in runs)
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
    assert [r for _, _, r in runs[0].log[3:]] == [r for _, _, r in runs[1].log[3:]]


def test_a_graph_smaller_than_the_vectors_ends_early(make_phase):
    phase = make_phase(graph={"nodes": 9, "edges": 20}, vectors=30, block=5)
    phase.run()
    U, _ = phase.gathered()
    assert U.shape[0] == 9
    assert U.shape[1] <= 9
    assert np.linalg.norm(np.eye(U.shape[1]) - U.T @ U, 2) < 1e-6
