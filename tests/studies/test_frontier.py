import statistics
from types import SimpleNamespace
from typing import Any

import pytest

from fedlap_app.errors import ConfigError, RunError
from fedlap_app.flower.grids import in_process
from fedlap_app.flower.server.observer import Observer
from fedlap_app.graphs.federation import load_federation
from fedlap_app.privacy.density import density_of
from fedlap_app.privacy.leakage import largest_p_plus_r, largest_vectors
from fedlap_app.settings import Settings, parse_settings
from fedlap_app.studies import frontier
from fedlap_app.studies.frontier import bench_frontier, choose
from fedlap_app.studies.spectrum import run_spectrum

SMALL: dict[str, object] = {
    "dataset": "digits", "clients": 2, "partition": "random", "rounds": 2, "local-epochs": 1,
    "hidden": "8", "structure-width": 8, "train-ratio": 0.05, "test-ratio": 0.1,
    "self-training": 0, "operator": "sym",
}  # fmt: skip
SETTINGS = parse_settings(SMALL)
ROW: dict[str, Any] = {"exchanged": 30, "round_trips": 5, "bytes_up_per_client": 9.0, "rank": 30}


def row(validation: float | None, **changes: float) -> dict[str, Any]:
    return {**ROW, "validation_mean": validation, **changes}


def test_the_highest_validation_accuracy_is_chosen() -> None:
    rows = [row(70.0, exchanged=1), row(None), row(72.0, exchanged=300)]
    assert choose(rows) is rows[2]


@pytest.mark.parametrize(
    ("dear", "cheap"),
    [
        ({"exchanged": 31, "round_trips": 1}, {}),
        ({"round_trips": 6, "rank": 1}, {}),
        ({"bytes_up_per_client": 10.0}, {"rank": 31}),
        ({}, {"rank": 29}),
    ],
)
def test_of_equal_accuracies_the_cheapest_is_chosen(
    dear: dict[str, Any], cheap: dict[str, Any]
) -> None:
    rows = [row(70.0, **dear), row(70.0, **cheap), row(70.0, **dear)]
    assert choose(rows) is rows[1]


def test_without_validation_nodes_there_is_no_choice() -> None:
    assert choose([row(None)]) is None
    assert choose([]) is None


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDLAP_HOME", str(tmp_path_factory.mktemp("home")))
        lists: dict[str, list[str | int]] = {
            "vectors": ["bound", 6, 50],
            "rank": [0, 10],
            "block": [5],
        }
        return bench_frontier(SETTINGS, lists, [3, 4])


def test_every_setting_has_a_row_with_its_accuracy(report: dict[str, Any]) -> None:
    bound = report["bound"]
    found = [(row["exchanged"], row["rank"], row["block"]) for row in report["rows"]]
    assert found == [(bound, bound, 5), (bound, 10, 5), (6, 6, 5), (50, 50, 5), (50, 10, 5)]
    assert [each["reason"] for each in report["skipped"]] == [
        "no more vectors can be kept than are exchanged"
    ]
    assert report["failed"] == []
    assert all(0 <= row["validation_mean"] <= 100 for row in report["rows"])
    assert report["seeds"] == 2


def test_both_choices_have_the_highest_validation_accuracy_of_their_kind(
    report: dict[str, Any],
) -> None:
    inside = [row for row in report["rows"] if row["exchanged"] <= report["bound"]]
    for which, rows in (("best", report["rows"]), ("best_under_bound", inside)):
        chosen = report[which]
        assert chosen["validation_mean"] == max(row["validation_mean"] for row in rows)
        assert [row for row in report["rows"] if row[which]] == [chosen]
    assert report["best_under_bound"]["inside"]


def test_the_leakage_is_that_of_the_vectors_exchanged_in_the_whole_graph(
    report: dict[str, Any],
) -> None:
    density = density_of(load_federation(SETTINGS.data_spec))
    p = density.true_p
    assert report["bound"] == largest_vectors(density.nodes, p)
    for row in report["rows"]:
        assert row["kl"] == pytest.approx(row["exchanged"] / (2 * density.nodes * p * (1 - p)))
        assert row["p_plus_r"] == largest_p_plus_r(row["exchanged"], density.nodes, p)
        assert row["inside"] == (row["p_plus_r"] <= 1)


def test_the_price_is_that_of_the_offline_phase_alone(report: dict[str, Any]) -> None:
    given = {**SMALL, "vectors": 50, "rank": 10, "block": 5}
    alone = [
        run_spectrum(parse_settings({**given, "seed": seed}), check=False, dump=None)
        for seed in (3, 4)
    ]
    row = report["rows"][-1]
    assert row["round_trips"] == alone[0]["round_trips"]
    assert row["handshake_round_trips"] == alone[0]["handshake_round_trips"]
    mean = statistics.mean(each["bytes_up_per_client"] for each in alone)
    assert row["bytes_up_per_client"] == pytest.approx(mean)


def test_a_basis_that_is_reused_has_the_price_of_computing_it() -> None:
    lists: dict[str, list[str | int]] = {"vectors": [6], "block": [3]}
    first, again = (bench_frontier(SETTINGS, lists, [0])["rows"][0] for _ in range(2))
    for key in ("round_trips", "handshake_round_trips", "bytes_up_per_client", "test_mean"):
        assert again[key] == first[key]


def test_a_setting_that_fails_does_not_lose_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(settings: Settings, observer: Observer, *rest: Any) -> dict[str, Any]:
        if settings.block == 2:
            raise RunError("organisation b failed: look at its log")
        if settings.block == 3:
            raise ZeroDivisionError
        return run_as_ever(settings, observer, *rest)

    run_as_ever = in_process.run_in_process
    monkeypatch.setattr(in_process, "run_in_process", run)
    said: list[str] = []
    report = bench_frontier(
        SETTINGS, {"vectors": [4], "block": [2, 1, 3]}, [0], bound=10, say=said.append
    )
    assert [row["block"] for row in report["rows"]] == [1]
    assert [each["reason"] for each in report["failed"]] == [
        "organisation b failed: look at its log",
        "ZeroDivisionError",
    ]
    assert any("Failed: sym, smallest, 4 vectors" in text for text in said)
    with pytest.raises(RunError, match="all 2 settings failed, the first with: sym"):
        bench_frontier(SETTINGS, {"vectors": [4], "block": [2, 3]}, [0])


def test_a_given_bound_decides_what_is_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SimpleNamespace(accuracy={"val": 0.5, "test": None}, offline={})
    monkeypatch.setattr(frontier, "conduct", lambda settings: run)
    monkeypatch.setattr(frontier, "_price_of", lambda *_: frontier._Price(3, 3, 100.0))
    lists: dict[str, list[str | int]] = {"vectors": [5, "bound", 9]}
    report = bench_frontier(SETTINGS, lists, [0], bound=7)
    assert [(row["exchanged"], row["inside"]) for row in report["rows"]] == [
        (5, True), (7, True), (9, False),
    ]  # fmt: skip
    # All are equally good: the fewest vectors win both times.
    assert report["best"] is report["best_under_bound"] is report["rows"][0]
    assert report["rows"][0]["test_mean"] is None


def test_a_generated_graph_counts_at_its_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parse_settings({"dataset": "banks", "accounts": 300, "clients": 2})
    run = SimpleNamespace(accuracy={"val": 0.5, "test": 0.5}, offline={})
    monkeypatch.setattr(frontier, "conduct", lambda settings: run)
    monkeypatch.setattr(frontier, "_price_of", lambda *_: frontier._Price(3, 3, 100.0))
    lists: dict[str, list[str | int]] = {"vectors": [12]}
    alone = [bench_frontier(settings, lists, [seed]) for seed in (0, 1)]
    both = bench_frontier(settings, lists, [0, 1])
    assert both["bound"] == min(each["bound"] for each in alone)
    assert both["rows"][0]["kl"] == max(each["rows"][0]["kl"] for each in alone)


def test_other_methods_and_empty_grids_are_refused() -> None:
    with pytest.raises(ConfigError, match="does not use the spectral basis"):
        bench_frontier(parse_settings({**SMALL, "method": "fedavg"}), {}, [0])
    with pytest.raises(ConfigError, match="no setting of the grid can be run"):
        bench_frontier(SETTINGS, {"vectors": [5], "rank": [7]}, [0])
