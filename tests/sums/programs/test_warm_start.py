"""A basis that starts from an old one: Rayleigh-Ritz, turned to the old rows, for fewer sums."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.graphs.graph import join
from fedlap_app.graphs.without import without
from fedlap_app.sums.job.bases import Bases
from fedlap_app.sums.job.live import forget as forget_live
from fedlap_app.sums.job.messages import SUMS
from fedlap_app.sums.programs.row_exchange import RowExchange
from tests.spectral import reference
from tests.sums.job.conftest import KRYLOV, SPEC, Phase, random_parts

COLD = replace(KRYLOV, vectors=12, rank=4)


def rows(phase, job, data=None):
    """Rows of all organisations of the basis of a job, for their data or that of others."""
    found = [
        Bases(phase.root / part.name / "basis").find(job, (data or part).fingerprint())
        for part in phase.parts
    ]
    return np.vstack([each.U for each in found]), found[0]


@pytest.fixture
def changed(request, tmp_path):
    """A finished basis of a graph, and the graph with some more nodes."""
    parts = random_parts(nodes=60, edges=170, seed=5)
    gone = np.concatenate([part.ids[:2] for part in parts])
    program = replace(COLD, operator=getattr(request, "param", "sym"))
    old = Phase(tmp_path, [without(part, gone) for part in parts], replace(SPEC, program=program))
    job = old.run().request.job
    warm = replace(SPEC, program=replace(program, start=job))
    return old, job, Phase(tmp_path, parts, warm)


def whole(phase, operator):
    graph = join(phase.parts)
    adjacency = graph.out_adjacency()
    L = reference.whole_operator(operator, adjacency, self_loops=1.0, regulariser=None)
    return L @ np.eye(graph.num_nodes), adjacency.sum(axis=1)


@pytest.mark.parametrize("changed", ["sym", "rw", "regularised", "laplacian"], indirect=True)
def test_the_rows_are_ritz_vectors_turned_to_the_old_ones(changed):
    _, job, phase = changed
    program = phase.spec.program
    done = phase.run()
    U, basis = rows(phase, done.request.job)
    stores = {part.name: Bases(phase.root / part.name / "basis") for part in phase.parts}
    X = np.vstack(
        [program.fitted(stores[part.name].of_job(job, part), part).U for part in phase.parts]
    )
    L, degrees = whole(phase, "sym" if program.operator == "rw" else program.operator)
    if program.operator == "rw":
        root = np.sqrt(degrees + 1.0)[:, None]
        U, X = root * U, root * X
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-7)
    np.testing.assert_allclose(np.diag(U.T @ L @ U), basis.eigenvalues, atol=1e-7)
    near = U.T @ X
    np.testing.assert_allclose(near, near.T, atol=1e-7)
    assert np.linalg.eigvalsh((near + near.T) / 2).min() > 0
    # The span is better than that of the old rows, and no worse than a cold start's with twice
    # the vectors would have to be: Ritz values lie above the eigenvalues.
    kept = np.linalg.qr(X)[0]
    assert np.trace(U.T @ L @ U) < np.trace(kept.T @ L @ kept)
    assert np.trace(U.T @ L @ U) >= np.linalg.eigvalsh(L)[:4].sum() - 1e-9


def test_it_takes_the_rounds_and_half_the_vectors_that_are_planned(changed):
    _, _, phase = changed
    done = phase.run()
    steps = {request.step for _, request, _ in phase.log if request.kind == SUMS}
    assert len(steps) + 1 == phase.spec.rounds()
    _, basis = rows(phase, done.request.job)
    assert basis.facts.columns == 6


def test_a_process_that_is_new_for_every_message_gives_the_same_bits(changed, tmp_path):
    _, _, phase = changed
    expected = rows(phase, phase.run().request.job)[0]

    def forgetful(member, request):
        forget_live()
        return member.answer(request)

    again = phase.run(around=forgetful, refresh=True)
    assert np.array_equal(rows(phase, again.request.job)[0], expected)


def test_an_old_basis_is_kept_without_a_sum(changed):
    _, job, phase = changed
    phase.spec = replace(phase.spec, program=replace(phase.spec.program, keep_start=True))
    done = phase.run()
    assert done.reused
    assert not any(request.kind == SUMS for _, request, _ in phase.log)
    for part in phase.parts:
        kept = Bases(phase.root / part.name / "basis").find(job, part.fingerprint())
        assert np.array_equal(kept.graph.ids, part.ids)
        stayed = ~(kept.U == 0).all(axis=1)
        assert stayed.sum() > part.num_nodes - 3
        assert sorted(np.flatnonzero(~kept.rows.computed)) == [0, 1]


def test_an_organisation_without_the_old_basis_refuses(changed, tmp_path):
    _, _, phase = changed
    elsewhere = Phase(tmp_path / "elsewhere", phase.parts, phase.spec)
    with pytest.raises(RunError, match="leave start-basis out"):
        elsewhere.run()


@pytest.fixture
def joined(request, tmp_path):
    """A finished basis of two organisations, and a phase with a third one."""
    parts = random_parts(nodes=60, edges=170, seed=6)
    newcomer = parts[-1].ids
    program = replace(COLD, operator=getattr(request, "param", "sym"))
    two = [without(part, newcomer) for part in parts[:-1]]
    old = Phase(tmp_path, two, replace(SPEC, program=program))
    job = old.run().request.job
    start = replace(program, start=job, exchange_rows=True)
    return old, job, Phase(tmp_path, parts, replace(SPEC, program=start))


@pytest.mark.parametrize("backend", ["mask", "ckks"])
def test_who_joined_gets_the_mean_of_its_neighbours_rows(joined, backend):
    old, job, phase = joined
    kept = replace(phase.spec.program, keep_start=True)
    phase.spec = replace(phase.spec, program=kept, backend=backend)
    done = phase.run()
    steps = {request.step for _, request, _ in phase.log if request.kind == SUMS}
    assert len(steps) + 1 == phase.spec.rounds()
    U, basis = rows(phase, done.request.job)
    before, facts = rows(old, job)
    degrees = join(old.parts).out_adjacency().sum(axis=1)
    graph = join(phase.parts)
    A = graph.out_adjacency().toarray()
    many = len(before)
    said = before / np.sqrt(degrees + 1.0)[:, None]
    heard = A[many:, :many] > 0
    direct = heard.any(axis=1)
    mean = (heard[direct] @ said) / heard[direct].sum(axis=1)[:, None]
    root = np.sqrt(A.sum(axis=1)[many:][direct] + 1.0)
    np.testing.assert_allclose(U[many:][direct], root[:, None] * mean, atol=1e-5)
    np.testing.assert_allclose(U[:many], before, atol=1e-12)
    np.testing.assert_allclose(basis.eigenvalues, facts.eigenvalues, atol=1e-5)
    assert basis.facts.columns == 5
    newcomer = Bases(phase.root / phase.parts[-1].name / "basis").facts()[0]
    assert newcomer.drift == 1.0  # the next change makes the basis anew


@pytest.mark.parametrize("joined", ["sym", "rw", "regularised", "laplacian"], indirect=True)
def test_the_iteration_goes_on_with_who_joined(joined):
    _, _, phase = joined
    operator = phase.spec.program.operator
    done = phase.run()
    U, basis = rows(phase, done.request.job)
    L, degrees = whole(phase, "sym" if operator == "rw" else operator)
    if operator == "rw":
        U = np.sqrt(degrees + 1.0)[:, None] * U
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-7)
    np.testing.assert_allclose(np.diag(U.T @ L @ U), basis.eigenvalues, atol=1e-7)
    kept = replace(phase.spec.program, keep_start=True)
    phase.spec = replace(phase.spec, program=kept)
    X, _ = rows(phase, phase.run().request.job)
    if operator == "rw":
        X = np.sqrt(degrees + 1.0)[:, None] * X
    X = np.linalg.qr(X)[0]
    assert np.trace(U.T @ L @ U) < np.trace(X.T @ L @ X)


@pytest.mark.parametrize("keep", [False, True])
def test_who_joined_may_be_killed_at_any_step(joined, keep):
    _, _, phase = joined
    phase.spec = replace(phase.spec, program=replace(phase.spec.program, keep_start=keep))
    expected = rows(phase, phase.run().request.job)[0]

    def forgetful(member, request):
        forget_live()
        return member.answer(request)

    again = phase.run(around=forgetful, refresh=True)
    assert np.array_equal(rows(phase, again.request.job)[0], expected)


def test_nobody_is_told_of_nodes_that_were_there(changed):
    """A contribution says something of new foreign nodes only."""
    _, _, phase = changed
    program = replace(phase.spec.program, exchange_rows=True)
    for part in phase.parts:
        old = program.find_start(part, phase.root / part.name)
        site = SimpleNamespace(subgraph=part, root=phase.root / part.name)
        totals = SimpleNamespace(nodes=60, mean_degree=5.0)
        block = RowExchange(program, site, totals, 1.0).contribute().block
        was_there = np.isin(part.external_ids, old.graph.external_ids)
        assert not block[was_there].any()
        assert block[~was_there].any()


def test_rows_of_a_basis_that_nobody_has_are_refused(joined, tmp_path):
    _, _, phase = joined
    elsewhere = Phase(tmp_path / "elsewhere", phase.parts, phase.spec)
    with pytest.raises(ProtocolError, match="Nobody who takes part has the basis"):
        elsewhere.run()


def test_who_left_is_in_no_row(tmp_path):
    parts = random_parts(nodes=80, clients=4, edges=240, seed=7)
    old = Phase(tmp_path, parts, replace(SPEC, program=COLD))
    job = old.run().request.job
    stayed = [without(part, parts[-1].ids) for part in parts[:-1]]
    phase = Phase(tmp_path, stayed, replace(SPEC, program=replace(COLD, start=job)))
    U, _ = rows(phase, phase.run().request.job)
    assert len(U) == sum(part.num_nodes for part in stayed)
    np.testing.assert_allclose(U.T @ U, np.eye(4), atol=1e-7)
