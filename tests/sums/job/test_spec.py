from dataclasses import replace

import pytest

from .conftest import SPEC


def test_every_field_and_the_seed_count():
    others = [
        replace(SPEC, rank=3),
        replace(SPEC, backend="plain"),
        replace(SPEC, hide_topology=False),
        replace(SPEC, regulariser=0.5),
    ]
    digests = {spec.digest(0) for spec in (SPEC, *others)}
    assert len(digests | {SPEC.digest(1), SPEC.digest(None)}) == 7


@pytest.mark.parametrize(
    ("solver", "vectors", "block", "rounds"),
    [("block-lanczos", 100, 10, 13), ("dcgs2", 100, 10, 203), ("arnoldi", 100, 10, 5254)],
)
def test_round_trips(solver, vectors, block, rounds):
    # 5,251 of the paper's algorithm; then one for Q'Q and two for the small eigenproblem.
    assert replace(SPEC, solver=solver, vectors=vectors, block=block).rounds() == rounds


@pytest.mark.parametrize("rows", [1, 7, 54, 271, 17_000])
@pytest.mark.parametrize("block", [1, 10, 15])
def test_layouts_grow_by_little(rows, block):
    spec = replace(SPEC, vectors=100, block=block)
    multiple = spec.multiple(rows)
    assert 8 <= multiple <= 64
    assert multiple <= max(8, rows * block / 64)


def test_unset_values():
    assert SPEC.kept == SPEC.vectors
    assert replace(SPEC, rank=3).kept == 3
    assert SPEC.shift is None
    assert replace(SPEC, solver="dcgs2").width == 1
