import numpy as np
import pytest

from tests.spectral import reference


@pytest.mark.parametrize(("kind", "per_step"), [("sym", 2), ("regularised", 2), ("directed", 3)])
def test_two_round_trips_a_step_and_full_orthogonality(graph, federate, kind, per_step):
    rng = np.random.default_rng(0)
    A = graph(rng, 200, 0.05, directed=kind == "directed")
    federation = federate(A, rng.integers(0, 2, 200), 2)
    solvers = federation.solvers("dcgs2", kind, rng.standard_normal((200, 1)), vectors=100)
    while not solvers[0].done:
        federation.round(solvers)
    assert solvers[0].rounds == per_step * 100 + 1
    Q, Z = np.zeros((200, 100)), np.zeros((200, 100))
    for part, solver in zip(federation.parts, solvers, strict=True):
        Q[part.nodes], Z[part.nodes] = solver.Q, solver.Z
    assert np.linalg.norm(Q.T @ Q - np.eye(100), 2) < 1e-13
    image = reference.whole_operator(kind, A) @ Q / solvers[0].operator.unit
    assert pytest.approx(image, abs=1e-13) == Z
    assert solvers[0].ritz == pytest.approx(Q.T @ Z, abs=1e-12)
