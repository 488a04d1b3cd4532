from dataclasses import replace

import pytest

from fedlap_app.settings import parse_settings
from fedlap_app.sums.programs import NeighbourSums, RowNames

from .conftest import KRYLOV, SPEC


def of(**changes):
    return replace(SPEC, program=replace(KRYLOV, **changes))


def test_every_field_and_the_seed_count():
    others = [
        of(rank=3),
        replace(SPEC, backend="plain"),
        replace(SPEC, hide_topology=False),
        of(regulariser=0.5),
        replace(SPEC, program=RowNames(KRYLOV)),
        replace(SPEC, program=NeighbourSums()),
        replace(SPEC, program=NeighbourSums(least_contributors=1)),
    ]
    digests = {spec.digest(0) for spec in (SPEC, *others)}
    assert len(digests | {SPEC.digest(1), SPEC.digest(None)}) == 10


@pytest.mark.parametrize(
    ("solver", "vectors", "block", "rounds"),
    [("block-lanczos", 100, 10, 13), ("dcgs2", 100, 10, 203), ("arnoldi", 100, 10, 5254)],
)
def test_round_trips(solver, vectors, block, rounds):
    # 5,251 of the paper's algorithm; then one for Q'Q and two for the small eigenproblem.
    assert of(solver=solver, vectors=vectors, block=block).rounds() == rounds


@pytest.mark.parametrize("rows", [1, 7, 54, 271, 17_000])
@pytest.mark.parametrize("block", [1, 10, 15])
def test_layouts_grow_by_little(rows, block):
    spec = of(vectors=100, block=block)
    multiple = spec.multiple(rows)
    assert 8 <= multiple <= 64
    assert multiple <= max(8, rows * block / 64)


def test_digests_of_the_version_before_still_hold():
    """Stored bases and the names of rows follow from them."""
    settings = parse_settings({})
    assert settings.offline_spec.digest(0) == "80162b1d63213ca51d09fc0ed60ea647"
    rows = parse_settings({"method": "fedlap"}).offline_spec
    assert rows.digest(None) == "88fd8b1bc2e8d0241a1569f6293b9bf4"


def test_unset_values():
    assert KRYLOV.kept == KRYLOV.vectors
    assert replace(KRYLOV, rank=3).kept == 3
    assert KRYLOV.shift is None
    assert replace(KRYLOV, solver="dcgs2").width == 1
