import csv

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.studies.offline_table import draw, table_of
from fedlap_app.studies.report_files import write_csv

ROW = {
    "solver": "block-lanczos",
    "backend": "mask",
    "extrapolated": True,
    "round_trips": 13,
    "bytes_up_per_client": 2_198_612,
    "bytes_down_per_client": 519_896,
    "values_per_client": 268_564,
    "bytes_per_value_up": 8.1865,
    "seconds": 1.25,
    "cpu_seconds": 1.2,
    "cpu_seconds_iteration": 1.0,
    "seconds_clients": 0.9,
    "seconds_server": 0.35,
    "seconds_sealing": 0.3,
    "seconds_opening": 0.1,
    "seconds_adding": 0.1,
    "orthogonality": 1e-12,
    "capture": None,
}
REPORT = {
    "dataset": "cora",
    "operator": "sym",
    "clients": 10,
    "vectors": 100,
    "block": 10,
    "rank": 100,
    "turns": 3,
    "rows": [ROW, {**ROW, "backend": "bare", "bytes_up_per_client": 0}],
    "bars": [
        {
            "solver": "block-lanczos",
            "what": "plain / bare",
            "value": 3.5,
            "limit": 3,
            "bound": "at most",
            "met": False,
        }
    ],
}


def test_the_table_names_units_bars_and_extrapolation():
    text = table_of(REPORT)
    assert "2.20" in text
    assert "1.0e-12" in text
    assert "MISSED" in text
    assert "extrapolated" in text


def test_csv_has_one_line_a_row(tmp_path):
    write_csv(REPORT, tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["backend"] for row in rows] == ["mask", "bare"]
    assert float(rows[0]["seconds"]) == 1.25
    assert rows[1]["dataset"] == "cora"


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_suffix_says_the_form_of_the_chart(tmp_path, name, start):
    draw(REPORT, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_other_suffixes_and_folders_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="end in one of"):
        draw(REPORT, tmp_path / "a.doc")
    with pytest.raises(ConfigError, match="another file"):
        write_csv(REPORT, tmp_path / "none" / "a.csv")
