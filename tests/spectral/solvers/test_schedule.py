import numpy as np
import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.spectral.solvers import Round, SolverSettings, schedule


@pytest.mark.parametrize("solver", ["block-lanczos", "dcgs2", "arnoldi"])
@pytest.mark.parametrize("kind", ["sym", "regularised", "directed"])
def test_predicted_rounds_are_those_of_a_run(graph, federate, solver, kind):
    rng = np.random.default_rng(0)
    A = graph(rng, 60, 0.2, directed=kind == "directed")
    federation = federate(A, rng.integers(0, 3, 60), 3)
    solvers = federation.solvers(solver, kind, rng.standard_normal((60, 4)), vectors=18)
    seen = []
    while not solvers[0].done:
        mine = solvers[0].contribute()
        seen.append(Round(0 if mine.block is None else mine.block.shape[1], mine.small.size))
        federation.round(solvers)
    settings = SolverSettings(vectors=18, block=4)
    phases = 2 if kind == "directed" else 1
    assert seen == list(schedule(solver, settings, phases=phases, spike=kind == "regularised"))


@pytest.mark.parametrize(
    ("solver", "rounds"), [("block-lanczos", 10 + 1), ("dcgs2", 200 + 1), ("arnoldi", 5251 + 1)]
)
def test_round_trips_for_a_hundred_vectors(solver, rounds):
    assert len(list(schedule(solver, SolverSettings(vectors=100, block=10)))) == rounds


def test_unknown_solver_is_refused():
    with pytest.raises(ConfigError, match="power"):
        list(schedule("power", SolverSettings(vectors=1)))
