import numpy as np
import pytest
from scipy.stats import kstest

from fedlap_app.sums.ckks.pads import ResiduePads
from fedlap_app.sums.header import Place

PLACE = Place("krylov", 3)
# The second is so far below a power of two that every fourth draw is above it.
MODULI = [(2**54 - 77_823, 54), (3 * 2**40 + 1, 42)]


@pytest.fixture(params=MODULI, ids=["q", "many rejections"])
def pads(request, rings):
    return {ring.me: ResiduePads(ring, *request.param) for ring in rings(5)}, request.param[0]


def totals(pads, place=PLACE, count=5000):
    return {
        me: each.total(
            count, place, "", add=[p for p in pads if p > me], subtract=[p for p in pads if p < me]
        )
        for me, each in pads.items()
    }


def test_pads_of_all_cancel_and_those_of_some_are_uniform(pads):
    pads, modulus = pads
    found = totals(pads)
    assert all(each.max() < modulus for each in found.values())
    assert not (np.sum([*found.values()], axis=0, dtype=object) % modulus).any()
    some = np.sum([*found.values()][:-1], axis=0, dtype=object) % modulus
    assert kstest(some.astype(float) / modulus, "uniform").pvalue > 1e-4


def test_every_place_has_pads_of_its_own(pads):
    pads, _ = pads
    one, again = totals(pads), totals(pads)
    other = totals(pads, Place("krylov", 4))
    for me in pads:
        assert (one[me] == again[me]).all()
        assert (one[me] != other[me]).all()
