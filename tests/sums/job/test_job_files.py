import numpy as np
import pytest

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.store.job_files import JobFiles, pack_arrays, unpack_arrays
from fedlap_app.store.packing import pack, unpack


@pytest.fixture(params=[True, False])
def files(tmp_path, request):
    return JobFiles(tmp_path / "a" / "job", durable=request.param)


def test_files_of_parts_are_private_and_come_back(files):
    files.write("keys", b"one", b"", b"three")
    assert [bytes(part) for part in files.read("keys", 3)] == [b"one", b"", b"three"]
    assert (files.path / "keys").stat().st_mode & 0o077 == 0
    assert files.path.stat().st_mode & 0o077 == 0
    assert [path.name for path in files.path.iterdir()] == ["keys"]


def test_bytes_in_the_middle_of_a_file_come_back(files):
    files.write_at("columns", 5, [b"sec", b"", b"ond"])
    files.write_at("columns", 2, [b"one"])
    assert files.read_at("columns", 0, 11) == b"\0\0onesecond"
    with pytest.raises(RunError, match="it is cut"):
        files.read_at("columns", 0, 12)
    assert (files.path / "columns").stat().st_mode & 0o077 == 0


def test_arrays_of_every_kind_come_back_in_c_order():
    arrays = {
        "mode": np.array("expand"),
        "flags": np.array([True, False]),
        "count": np.array(7),
        "block": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "none": np.zeros((4, 0)),
    }
    found = unpack_arrays(pack_arrays(arrays))
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].flags.c_contiguous
        assert found[name].flags.writeable
    with pytest.raises(ProtocolError, match="damaged"):
        unpack_arrays(pack(unpack(pack_arrays(arrays))[0], b""))
    assert unpack_arrays(b"") == {}


def test_an_absent_or_empty_file_is_an_error(files):
    with pytest.raises(RunError, match="cannot be read"):
        files.read("nothing")
    files.write("something", b"x")
    (files.path / "something").write_bytes(b"")
    with pytest.raises(RunError, match="cannot be read"):
        files.read("something")
