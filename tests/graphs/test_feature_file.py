import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.errors import DataError
from fedlap_app.graphs.feature_file import read_features, write_features

NAMES = ("x", "y", "z")
MATRIX = np.array([[0, 1.5, 0], [2, 0, 0]], dtype=np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "features.npz"


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_a_round_trip(path, make):
    write_features(path, make(MATRIX))
    again = read_features(path, 2, NAMES)
    assert sp.issparse(again) == (make is sp.csr_array)
    np.testing.assert_array_equal(sp.csr_array(again).toarray(), MATRIX)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_other_sparse_forms(path, make):
    sp.save_npz(path, make(MATRIX))
    np.testing.assert_array_equal(read_features(path, 2, NAMES).toarray(), MATRIX)


def test_whole_numbers_are_numbers(path):
    np.savez(path, x=np.eye(2, 3, dtype=np.int8))
    assert read_features(path, 2, NAMES).dtype == np.float32


def refusal(path, nodes=2):
    """The one sentence by which a file is refused."""
    with pytest.raises(DataError) as caught:
        read_features(path, nodes, NAMES)
    return str(caught.value).splitlines()


def test_wrong_sizes_are_refused(path):
    np.savez(path, x=MATRIX)
    assert ["2 rows but there are 3 nodes" in line for line in refusal(path, nodes=3)] == [True]
    np.savez(path, x=MATRIX[:, :2])
    assert ["2 columns but org.toml announces 3" in line for line in refusal(path)] == [True]
    np.savez(path, x=MATRIX[0])
    assert ["one row a node" in line for line in refusal(path)] == [True]


def test_pickled_objects_are_refused(path):
    np.savez(path, x=np.array([{"a": 1}], dtype=object))
    assert ["cannot be read" in line for line in refusal(path)] == [True]


def test_text_is_refused(path):
    np.savez(path, x=np.array([["1", "2", "3"], ["4", "5", "6"]]))
    assert ["not numbers" in line for line in refusal(path)] == [True]


@pytest.mark.parametrize("content", [b"", b"junk", b"PK\x03\x04junk"])
def test_junk_is_refused(path, content):
    path.write_bytes(content)
    assert ["cannot be read" in line for line in refusal(path)] == [True]


def test_positions_outside_the_matrix_are_refused(path):
    np.savez(
        path,
        format=np.array(b"csr"),
        shape=np.array([2, 3]),
        data=np.ones(2),
        indices=np.array([0, 10**6]),
        indptr=np.array([0, 1, 2]),
    )
    assert ["cannot be read" in line for line in refusal(path)] == [True]


def test_other_arrays_are_refused(path):
    np.savez(path, features=MATRIX)
    assert ["cannot be read" in line for line in refusal(path)] == [True]
