import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.privacy import solvable
from fedlap_app.privacy.solvable import (
    at_most_solvable,
    determined,
    foreign_block,
    solvable_of,
    total_share,
)


def by_rank(block):
    """A unit vector is in the row space if it does not raise the rank."""
    rank = np.linalg.matrix_rank(block)
    units = np.eye(block.shape[1])
    return np.array([np.linalg.matrix_rank(np.vstack([block, unit])) == rank for unit in units])


@settings(max_examples=80, deadline=None)
@given(
    rows=st.integers(1, 14),
    columns=st.integers(1, 14),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 2**32),
    weighted=st.booleans(),
)
def test_it_agrees_with_ranks(rows, columns, share, seed, weighted):
    rng = np.random.default_rng(seed)
    block = (rng.random((rows, columns)) < share).astype(float)
    if weighted:
        block *= rng.uniform(0.5, 2.0, block.shape)
    np.testing.assert_array_equal(determined(sp.csr_array(block)), by_rank(block))


def test_the_iterative_way_agrees(monkeypatch):
    rng = np.random.default_rng(0)
    block = (rng.random((60, 50)) < 0.04).astype(float)
    expected = determined(sp.csr_array(block))
    assert 0 < expected.sum() < 50
    monkeypatch.setattr(solvable, "_DENSE", 0)
    np.testing.assert_array_equal(determined(sp.csr_array(block)), expected)


def test_a_combination_can_determine_what_no_single_row_does():
    # a + b = s1 and a + b + c = s2 give c, but neither a nor b.
    block = sp.csr_array(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]))
    assert determined(block).tolist() == [False, False, True]


def test_a_client_really_solves_what_is_determined():
    parts = load_federation(DataSpec(clients=3, accounts=240))
    part = parts[0]
    block = foreign_block(part)
    found = determined(block)
    assert solvable_of(part).solved == found.sum() > 0
    entries = np.random.default_rng(1).standard_normal(part.num_external)
    guess = np.linalg.pinv(block.toarray()) @ (block @ entries)
    np.testing.assert_allclose(guess[found], entries[found], atol=1e-8)
    assert (abs(guess - entries)[~found] > 1e-6).all()


def test_what_partners_can_solve_is_bounded_from_the_own_side():
    parts = load_federation(DataSpec(clients=3, accounts=240))
    for part in parts:
        for bound in at_most_solvable(part):
            other = next(each for each in parts if each.name == bound.name)
            mine = other.external_owners == part.name
            assert bound.foreign == mine.sum()
            assert determined(foreign_block(other))[mine].sum() <= bound.solved


def test_two_partners_alone_know_it_exactly():
    mine, theirs = load_federation(DataSpec(clients=2, accounts=240))
    (bound,) = at_most_solvable(mine)
    assert (bound.foreign, bound.solved) == (theirs.num_external, solvable_of(theirs).solved)


@pytest.mark.parametrize(
    ("name", "share"), [("cora", 0.08), ("citeseer", 0.23), ("chameleon", 0.01)]
)
def test_shares_of_benchmarks(fedlap_data, name, share):
    parts = load_federation(DataSpec(dataset=name, clients=10, partition="random"))
    found = [solvable_of(part) for part in parts]
    assert total_share(found) == pytest.approx(share, abs=0.02)
