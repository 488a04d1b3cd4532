import numpy as np
import pytest

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.spectral.ritz import solve_small
from fedlap_app.spectral.solvers import Basis, SolverSettings, make_solver


@pytest.fixture
def pair(graph, federate):
    rng = np.random.default_rng(0)
    federation = federate(graph(rng, 30, 0.2), rng.integers(0, 2, 30), 2)
    start = rng.standard_normal((30, 4))
    return federation, start, federation.solvers("block-lanczos", "sym", start, vectors=12)


def test_sums_of_another_round_are_refused(pair):
    _, _, (solver, _) = pair
    mine = solver.contribute()
    received = np.zeros((solver.operator.nodes, 4))
    with pytest.raises(ProtocolError, match="summed numbers"):
        solver.absorb(received, mine.small[:-1])
    with pytest.raises(ProtocolError, match="finite"):
        solver.absorb(received, np.full_like(mine.small, np.nan))
    with pytest.raises(ProtocolError, match="received block"):
        solver.absorb(received[:, :3], mine.small)
    with pytest.raises(ProtocolError, match="received block"):
        solver.absorb(None, mine.small)
    assert solver.rounds == 0
    with pytest.raises(ProtocolError, match="not over"):
        solver.problem()


def test_clients_know_the_same_small_problem(pair):
    federation, _, solvers = pair
    federation.run(solvers, 5)
    first, second = (solver.problem() for solver in solvers)
    assert (first.gram == second.gram).all()
    assert (first.ritz == second.ritz).all()


def test_basis_in_memory_mapped_files(pair, tmp_path):
    federation, start, solvers = pair
    in_memory, _ = federation.run(solvers, 5)
    mapped = []
    for i, (solver, part) in enumerate(zip(solvers, federation.parts, strict=True)):
        shape = (len(part.nodes), 12)
        files = [
            np.memmap(tmp_path / f"{name}{i}", np.float64, "w+", shape=shape, order="F")
            for name in "QZ"
        ]
        mapped.append(
            make_solver(
                "block-lanczos", solver.operator, solver.settings, start[part.nodes], Basis(*files)
            )
        )
    on_disk, _ = federation.run(mapped, 5)
    assert (on_disk == in_memory).all()
    stored = np.fromfile(tmp_path / "Q0").reshape(12, -1).T
    assert (stored == solvers[0].Q).all()


def test_fewer_pairs_than_wanted_when_the_space_is_smaller(pair):
    federation, start, _ = pair
    solvers = federation.solvers("block-lanczos", "sym", start, vectors=12)
    federation.run(solvers, 5)
    solution = solve_small(solvers[0].problem(), 50)
    assert solution.Y.shape == (12, 12)
    assert solvers[0].finish(solution.Y).shape == (len(federation.parts[0].nodes), 12)


@pytest.mark.parametrize(
    "settings", [{"vectors": 0}, {"vectors": 1, "block": 0}, {"vectors": 1, "noise": 1e-3}]
)
def test_bad_settings_are_refused(settings):
    with pytest.raises(ConfigError):
        SolverSettings(**settings)


def test_start_block_of_another_client_is_refused(pair):
    _, start, (solver, _) = pair
    with pytest.raises(ConfigError, match="start block"):
        make_solver("block-lanczos", solver.operator, solver.settings, start)
