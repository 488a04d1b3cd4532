"""Models, bases, resolved settings and options are what they were, to the last bit."""

import json

import pytest

from tests.golden import matrix
from tests.golden.cells import BASES, GRIDS, TRAINING


def check(name, cell):
    known, found = matrix.expected()["cells"][name], json.loads(matrix.text_of(cell))
    keys = sorted(known.keys() | found.keys())
    differing = {
        key: (known.get(key, "absent"), found.get(key, "absent"))
        for key in keys
        if known.get(key, "absent") != found.get(key, "absent")
    }
    lines = [f"  {key}: was {was!r}, is {now!r}" for key, (was, now) in differing.items()]
    assert not differing, "\n".join(
        [f"cell {name!r} differs; if it is meant to, `{matrix.REWRITE}`", *lines]
    )


@pytest.fixture(scope="module")
def machine():
    return matrix.machine()


@pytest.fixture
def same_machine(machine):
    """Skip where other libraries or another processor may round otherwise."""
    known = matrix.expected()["made with"]
    for key, value in known.items():
        if machine.get(key) != value:
            pytest.skip(f"golden.json was made with {key} {value}, here is {machine.get(key)}")


def test_the_file_and_the_matrix_have_the_same_cells():
    cells = {*TRAINING, *GRIDS, *BASES, *matrix.presets(), *matrix.commands()}
    assert cells == matrix.expected()["cells"].keys()


@pytest.mark.parametrize("name", TRAINING | GRIDS)
def test_models_in_one_process(name, same_machine, tmp_path):
    check(name, matrix.trained((TRAINING | GRIDS)[name], tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("name", GRIDS)
def test_models_with_a_process_a_message(name, same_machine, tmp_path):
    check(name, matrix.run_with_processes(GRIDS[name], tmp_path))


@pytest.mark.integration
def test_a_model_of_flwr_run(same_machine, tmp_path):
    name = "two clients fedlap+"
    check(name, matrix.simulated(GRIDS[name], tmp_path))


@pytest.mark.parametrize("name", BASES)
def test_bases(name, same_machine, tmp_path):
    check(name, matrix.basis(BASES[name], tmp_path))


@pytest.mark.parametrize("name", matrix.presets())
def test_resolved_settings(name):
    check(name, matrix.resolved_settings(matrix.presets()[name]))


@pytest.mark.parametrize("name", matrix.commands())
def test_options(name):
    check(name, matrix.options(matrix.commands()[name]))
