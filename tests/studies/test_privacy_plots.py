import pytest

from fedlap_app.errors import ConfigError
from fedlap_app.studies.privacy_plots import accuracy_steps, draw_accuracy, prepare


def row(auc, validation, test, exchanged):
    return {"auc": auc, "validation_mean": validation, "test_mean": test, "exchanged": exchanged}


ROWS = [
    row(0.99, 81.0, 80.5, 100),
    row(0.7, 76.0, 75.0, 8),
    row(0.9, 75.0, 79.0, 30),  # a better test accuracy does not count
    row(0.95, 78.0, 77.0, 31),
    row(0.6, None, 70.0, 3),
]


def test_looser_bounds_are_listed_where_they_allow_a_better_validation():
    assert accuracy_steps(ROWS) == [(0.7, 75.0, 8), (0.95, 77.0, 31), (0.99, 80.5, 100)]


def test_the_figure_is_drawn_even_when_nothing_can_be_chosen(tmp_path):
    report = {"rows": ROWS, "dataset": "cora", "partition": "random", "clients": 10}
    for rows in (ROWS, ROWS[-1:]):
        drawn = draw_accuracy({**report, "rows": rows}, tmp_path)
        assert [path.name for path in drawn] == ["accuracy-auc.png", "accuracy-auc.svg"]
        assert all(path.stat().st_size > 1000 for path in drawn)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="name another folder for --plot"):
        prepare(tmp_path / "file" / "below")
