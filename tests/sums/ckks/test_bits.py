import numpy as np
import pytest

from fedlap_app.sums.ckks import bits


@pytest.mark.parametrize("width", [1, 17, 54, 60, 63])
def test_residues_come_back_and_take_no_more_room(width):
    rng = np.random.default_rng(width)
    residues = rng.integers(0, 1 << width, size=(3, 2, 128), dtype=np.uint64)
    residues[0, 0, :2] = 0, (1 << width) - 1
    packed = bits.pack(residues.reshape(3, -1), width)
    assert len(packed) == 3
    assert packed.nbytes * 8 == residues.size * width
    np.testing.assert_array_equal(bits.unpack(packed, width).reshape(residues.shape), residues)
