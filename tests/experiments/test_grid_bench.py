from dataclasses import replace

import pytest

from fedlap_app.experiments.grid_bench import bare_rounds, bench_grid
from fedlap_app.settings import Settings


@pytest.fixture
def settings():
    return replace(
        Settings(), method="fedavg", accounts=240, clients=2, rounds=3, local_epochs=1, hidden="8"
    )


def test_the_report_is_the_difference_of_two_medians(settings):
    report = bench_grid(settings, repeats=1)
    assert report["overhead_ms"] == pytest.approx(report["grid_ms"] - report["bare_ms"])
    assert min(report["grid_ms"], report["bare_ms"], report["bare_ms"] + report["scoring_ms"]) > 0
    assert report["rounds"] == settings.rounds


def test_the_first_round_does_not_count(settings):
    assert len(bare_rounds(settings, scored=True)) == settings.rounds - 1
