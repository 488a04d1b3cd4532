import math

import numpy as np
import pytest
from scipy import stats

from fedlap_app.studies.variation import explained, spread

VALUES = [81.0, 79.5, 80.25, 82.0, 78.75]


def test_the_interval_is_that_of_scipy() -> None:
    found = spread(VALUES)
    assert found.interval == pytest.approx(
        stats.t.interval(0.95, len(VALUES) - 1, np.mean(VALUES), stats.sem(VALUES))
    )
    assert found.std == pytest.approx(np.std(VALUES, ddof=1))


def test_it_covers_the_mean_as_often_as_it_says() -> None:
    draws = np.random.default_rng(7).normal(5.0, 2.0, (4000, 4))
    intervals = [spread(row.tolist()).interval for row in draws]
    covered = np.mean([low <= 5.0 <= high for low, high in filter(None, intervals)])
    assert covered == pytest.approx(0.95, abs=0.012)


def test_seeds_without_the_score_do_not_count() -> None:
    assert spread([*VALUES, None, math.nan]) == spread(VALUES)


def test_one_seed_says_that_it_is_one() -> None:
    found = spread([80.0])
    assert (found.mean, found.std, found.interval) == (80.0, None, None)
    assert str(found) == "80.00"
    assert "one seed" in explained(found)
    assert "5 seeds" in explained(spread(VALUES))


def test_without_any_score() -> None:
    assert spread([None]).mean is None
    assert (str(spread([])), explained(spread([]))) == ("-", "none")
