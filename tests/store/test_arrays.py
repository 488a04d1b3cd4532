import numpy as np
import pytest

from fedlap_app.errors import DataError
from fedlap_app.store.arrays import read_arrays, write_arrays

ARRAYS = {
    "text": np.array(["ä", "", "long text"]),
    "wide": np.arange(6, dtype=">i8").reshape(2, 3),
    "flags": np.array([True, False, True]),
    "none": np.empty((2, 0), dtype=np.float32),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "folder" / "file.graph"
    write_arrays(path, {"name": "x"}, ARRAYS)
    return path


@pytest.mark.parametrize("mmap", [False, True])
def test_arrays_come_back(file, mmap):
    meta, arrays = read_arrays(file, mmap=mmap)
    assert meta == {"name": "x"}
    assert list(arrays) == list(ARRAYS)
    for key, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[key], array)
        assert arrays[key].shape == array.shape


def test_nothing_else_is_left_in_the_folder(file):
    assert [path.name for path in file.parent.iterdir()] == ["file.graph"]


def test_a_failed_write_leaves_the_old_file(file):
    with pytest.raises(TypeError):
        write_arrays(file, {"name": object()}, ARRAYS)
    assert read_arrays(file)[0] == {"name": "x"}
    assert len(list(file.parent.iterdir())) == 1


def test_any_changed_byte_is_noticed(file):
    good = file.read_bytes()
    for at in range(0, len(good), 7):
        file.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        with pytest.raises(DataError, match="damaged"):
            read_arrays(file)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("keep", [0, 1, 20, 100, -1])
def test_a_file_cut_short_is_noticed(file, keep, mmap):
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match="damaged"):
        read_arrays(file, mmap=mmap)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="There is no file"):
        read_arrays(tmp_path / "nothing")
