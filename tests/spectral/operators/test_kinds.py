import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fedlap_app.errors import ConfigError, DataError
from fedlap_app.spectral.operators import KINDS, make_operator
from fedlap_app.spectral.totals import Totals, contribution
from fedlap_app.studies.true_spectrum import whole_operator


def apply(federation, operators, X):
    """The product over all clients, and the largest entry that was exchanged."""
    inputs = [X[part.nodes] for part in federation.parts]
    largest = 0.0
    for phase in range(operators[0].phases):
        owed = [op.owed(x, phase) for op, x in zip(operators, inputs, strict=True)]
        received = federation.exchange(owed)
        sums = sum(op.sums(x, phase) for op, x in zip(operators, inputs, strict=True))
        largest = max(largest, *(np.abs(r).max(initial=0) for r in [*received, *owed, sums]))
        inputs = [
            op.combine(x, r, sums, phase)
            for op, x, r in zip(operators, inputs, received, strict=True)
        ]
    Y = np.zeros_like(X)
    for part, rows in zip(federation.parts, inputs, strict=True):
        Y[part.nodes] = rows
    return Y, largest


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32),
    n=st.integers(1, 40),
    clients=st.sampled_from([2, 3, 5, 50]),
    density=st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    weighted=st.booleans(),
    loops=st.sampled_from([0.0, 1.0]),
)
def test_parts_add_up_to_the_whole(
    graph, federate, kind, seed, n, clients, density, weighted, loops
):
    rng = np.random.default_rng(seed)
    A = graph(rng, n, density, weighted=weighted, directed=kind == "directed")
    federation = federate(A, rng.integers(0, clients, n), clients)
    X = rng.standard_normal((n, 3))
    X /= np.linalg.norm(X, axis=0)
    operators = federation.operators(kind, self_loops=loops)
    Y, largest = apply(federation, operators, X)
    whole = whole_operator(kind, A, self_loops=loops) @ X
    assert Y * operators[0].unit == pytest.approx(whole, rel=1e-10, abs=1e-10)
    assert largest <= 64.0
    dense = whole_operator(kind, A, self_loops=loops) @ np.eye(n)
    assert np.linalg.norm(dense, 2) <= 2.0 * operators[0].unit * (1 + 1e-12)


def test_random_walk_vectors_are_those_of_the_random_walk(graph, federate):
    rng = np.random.default_rng(0)
    A = graph(rng, 30, 0.2, weighted=True)
    federation = federate(A, np.zeros(30, dtype=int), 1)
    operator = federation.operators("rw")[0]
    values, U = np.linalg.eigh(whole_operator("rw", A) @ np.eye(30))
    loops = A.toarray() + np.eye(30)
    walk = np.eye(30) - loops / loops.sum(axis=1, keepdims=True)
    shown = operator.present(U)
    assert walk @ shown == pytest.approx(shown * values, abs=1e-12)


@pytest.mark.parametrize("scale", [1e-5, 1e9])
@pytest.mark.parametrize("kind", KINDS)
def test_exchanged_values_stay_small_for_any_weights(graph, federate, kind, scale):
    rng = np.random.default_rng(1)
    A = graph(rng, 80, 0.5, weighted=True) * scale
    federation = federate(A, rng.integers(0, 3, 80), 3)
    X = rng.standard_normal((80, 2))
    X /= np.linalg.norm(X, axis=0)
    operators = federation.operators(kind, self_loops=0.0)
    Y, largest = apply(federation, operators, X)
    assert largest <= 64.0
    whole = whole_operator(kind, A, self_loops=0.0) @ X
    assert Y * operators[0].unit == pytest.approx(whole, rel=1e-9, abs=1e-9 * np.abs(whole).max())


def test_mean_and_deviation_of_the_laplacian_eigenvalues(graph, federate):
    A = graph(np.random.default_rng(2), 50, 0.2, weighted=True)
    operator = federate(A, np.zeros(50, dtype=int), 1).operators("laplacian")[0]
    values = np.linalg.eigvalsh(whole_operator("laplacian", A) @ np.eye(50)) / operator.unit
    assert operator.center == pytest.approx(values.mean())
    assert operator.spread == pytest.approx(values.std())


def test_bad_input_is_refused():
    rows = sp.csr_array(np.array([[0.0, 1.0]]))
    totals = Totals.from_sums(contribution(rows))
    with pytest.raises(ConfigError, match="spiral"):
        make_operator("spiral", rows, totals)
    with pytest.raises(ConfigError, match="self loops"):
        make_operator("sym", rows, totals, self_loops=-1.0)
    with pytest.raises(ConfigError, match="regulariser"):
        make_operator("regularised", rows, totals, regulariser=float("nan"))
    with pytest.raises(DataError, match="weight"):
        make_operator("sym", -rows, totals)
    with pytest.raises(DataError, match="shape"):
        make_operator("sym", rows.T.tocsr(), totals)
