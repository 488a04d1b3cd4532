from pathlib import Path
from typing import Any

import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.studies.frontier_table import draw, table_of
from fedlap_app.studies.report_files import check_folder, write_csv

ROW: dict[str, Any] = {
    "operator": "regularised",
    "keep": "smallest",
    "vectors": 30,
    "exchanged": 30,
    "rank": 30,
    "block": 3,
    "round_trips": 13,
    "handshake_round_trips": 3,
    "bytes_up_per_client": 661_000,
    "validation_mean": 73.25,
    "validation_std": 1.25,
    "validation_low": 71.75,
    "validation_high": 74.75,
    "test_mean": 72.75,
    "test_std": 0.2,
    "test_low": 72.5,
    "test_high": 73.0,
    "seconds": 9.0,
    "kl": 3.85,
    "p_plus_r": 0.99,
    "inside": True,
    "best": False,
    "best_under_bound": True,
}
OUTSIDE: dict[str, Any] = {
    **ROW, "operator": "sym", "vectors": 500, "exchanged": 500, "rank": 50, "validation_mean": 80.0,
    "validation_high": 82.0, "kl": 64.2, "p_plus_r": 1.95, "inside": False, "best": True,
    "best_under_bound": False,
}  # fmt: skip
REPORT: dict[str, Any] = {
    "dataset": "cora",
    "partition": "random",
    "clients": 10,
    "seeds": 3,
    "seed_start": 5,
    "nodes": 2708,
    "edges": 5278,
    "density": 0.00144,
    "bound": 31,
    "bound_p_plus_r": 31,
    "rows": [ROW, OUTSIDE],
    "skipped": [{"setting": "sym, 5 vectors, 7 kept", "reason": "too many"}],
    "failed": [{"setting": "sym, 9 vectors", "reason": "no memory"}],
    "best": OUTSIDE,
    "best_under_bound": ROW,
}


def test_the_table_names_both_choices_and_what_is_missing() -> None:
    lines = table_of(REPORT).splitlines()
    assert lines[2].split() == [
        "regularised", "smallest", "30", "30", "3", "13", "3", "0.66", "73.25", "+-", "1.50",
        "72.75", "+-", "0.25", "3.85", "0.990", "yes", "+",
    ]  # fmt: skip
    assert lines[3].endswith("no *")
    best = next(line for line in lines if line.startswith("highest validation"))
    assert "sym, smallest, M = 500, r = 50" in best
    under = next(line for line in lines if line.startswith("with at most 31 vectors"))
    assert "regularised, smallest, M = 30, r = 30, block 3" in under
    assert "skipped: sym, 5 vectors, 7 kept: too many" in lines
    assert "FAILED: sym, 9 vectors: no memory" in lines


def test_one_seed_has_no_deviation() -> None:
    alone = {"validation_high": None, "test_high": None}
    rows = {key: {**REPORT[key], **alone} for key in ("best", "best_under_bound")}
    text = table_of({**REPORT, **rows, "seeds": 1, "rows": [{**ROW, **alone}]})
    assert "+-" not in text
    assert "one seed" in text


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": [OUTSIDE]}, "the fewest are 500"),
        ({"rows": [OUTSIDE], "bound": 0}, "even one vector"),
        ({"rows": [{**ROW, "validation_mean": None}]}, "no validation nodes"),
    ],
)
def test_a_missing_choice_has_a_reason(changes: dict[str, Any], says: str) -> None:
    assert says in table_of({**REPORT, "best_under_bound": None, **changes})


@pytest.mark.parametrize(("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_chart(tmp_path: Path, name: str, start: bytes) -> None:
    draw(REPORT, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_chart_without_bound_and_without_test_nodes(tmp_path: Path) -> None:
    rows = [{**ROW, "test_mean": None}, OUTSIDE]
    draw({**REPORT, "rows": rows, "bound": 0}, tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_csv_has_one_line_a_row_and_no_nested_values(tmp_path: Path) -> None:
    write_csv(REPORT, tmp_path / "a.csv")
    header, first, _ = (tmp_path / "a.csv").read_text().splitlines()
    assert "skipped" not in header
    assert len(header.split(",")) == len(first.split(","))


def test_a_folder_that_is_not_there_is_told_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        check_folder(tmp_path / "none" / "a.csv")
