import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedlap_app.errors import DataError
from fedlap_app.graphs import tables
from fedlap_app.graphs.tables import column_names, read_table, write_table


@pytest.mark.parametrize("fmt", ["csv", "parquet"])
def test_columns_come_back_exactly(tmp_path, fmt):
    rng = np.random.default_rng(0)
    columns = {
        "id": np.array(["a", "", " b ", "1e5"]),
        "single": rng.normal(size=4).astype(np.float32),
        "double": np.array([0.1, 1 / 3, 1e-300, 123456789.123456789]),
    }
    write_table(tmp_path, "t", columns, fmt)
    path = tmp_path / f"t.{fmt}"
    table = read_table(path, ["id"], ["double", "single"])
    assert table.text["id"].tolist() == columns["id"].tolist()
    np.testing.assert_array_equal(table.numbers[:, 0], columns["double"])
    np.testing.assert_array_equal(table.numbers[:, 1].astype(np.float32), columns["single"])
    assert column_names(path) == list(columns)


def test_large_files_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_CELLS", 10)
    write_table(tmp_path, "t", {"id": np.arange(57).astype(str), "x": np.arange(57.0)}, "csv")
    table = read_table(tmp_path / "t.csv", ["id"], ["x"])
    assert table.text["id"].tolist() == [str(number) for number in range(57)]
    assert table.numbers[:, 0].tolist() == list(range(57))
    assert table.where(56).endswith("line 58")


def test_blank_lines_count_as_lines(tmp_path):
    (tmp_path / "t.csv").write_text("id\na\n\n\nb\n")
    table = read_table(tmp_path / "t.csv", ["id"], [])
    assert table.lines.tolist() == [2, 5]


def test_an_optional_column_may_be_absent(tmp_path):
    for fmt in ("csv", "parquet"):
        write_table(tmp_path, "t", {"id": np.array(["a"])}, fmt)
        table = read_table(tmp_path / f"t.{fmt}", ["id", "note"], [], optional=["note"])
        assert table.text["note"].tolist() == [""]


def parquet(tmp_path, **columns):
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_numbers_are_no_ids(tmp_path):
    with pytest.raises(DataError, match="leading zeros"):
        read_table(parquet(tmp_path, id=[1, 2]), ["id"], [])


def test_text_is_no_number(tmp_path):
    with pytest.raises(DataError, match="not numbers"):
        read_table(parquet(tmp_path, x=["1", "2"]), [], ["x"])


def test_missing_values_are_empty_text_and_nan(tmp_path):
    table = read_table(
        parquet(tmp_path, a=["x", None], b=pa.nulls(2), c=[1.0, None]), ["a", "b"], ["c"]
    )
    assert table.text["a"].tolist() == ["x", ""]
    assert table.text["b"].tolist() == ["", ""]
    assert np.isnan(table.numbers[1, 0])
    assert table.where(1).endswith("row 2")


def test_categories_are_text(tmp_path):
    path = parquet(tmp_path, a=pa.array(["x", "y", "x"]).dictionary_encode())
    assert read_table(path, ["a"], []).text["a"].tolist() == ["x", "y", "x"]


@pytest.mark.parametrize("content", [b"", b"junk" * 100, b"PAR1junkPAR1"])
def test_junk_is_no_parquet(tmp_path, content):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(DataError, match="not a readable Parquet file") as caught:
        read_table(tmp_path / "t.parquet", ["id"], [])
    assert "\n" not in str(caught.value)
