import numpy as np
import pytest

from fedlap_app.graphs.federation import load_federation
from fedlap_app.settings import parse_settings
from fedlap_app.studies.bare_loop import run_bare, run_textbook
from fedlap_app.studies.bare_parts import Parts
from fedlap_app.studies.spectrum import compare, run_spectrum

SMALL = {"dataset": "banks", "accounts": 240, "clients": 4, "vectors": 20, "block": 5}


@pytest.mark.parametrize("solver", ["block-lanczos", "dcgs2", "arnoldi"])
@pytest.mark.parametrize(
    "more", [{}, {"operator": "regularised"}, {"operator": "directed", "directed": True}]
)
def test_the_loop_is_the_phase_without_messages(solver, more):
    settings = parse_settings({**SMALL, **more, "solver": solver, "vectors": 10})
    subgraphs = load_federation(settings.data_spec)
    _, rows = run_bare(Parts(subgraphs, settings.offline_spec, settings.seed))
    named = {part.name: each for part, each in zip(subgraphs, rows, strict=True)}
    found = compare(settings, subgraphs, named)
    phase = run_spectrum(settings, check=True, dump=None)
    assert found["orthogonality"] < 1e-9
    assert found["capture"] == pytest.approx(phase["capture"], abs=1e-6)


@pytest.mark.parametrize("operator", ["sym", "laplacian"])
def test_the_textbook_finds_the_same_values(operator):
    settings = parse_settings({**SMALL, "operator": operator})
    subgraphs = load_federation(settings.data_spec)
    parts = Parts(subgraphs, settings.offline_spec, settings.seed)
    values, rows = run_bare(parts)
    textbook, other = run_textbook(parts)
    np.testing.assert_allclose(textbook, values, atol=1e-8)
    for mine, theirs in zip(rows, other, strict=True):
        np.testing.assert_allclose(np.abs(theirs), np.abs(mine), atol=1e-6)
