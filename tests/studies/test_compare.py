"""Methods side by side: paired, the same with any number of processes, with price and exposure."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fedlap_app as fedlap
from fedlap_app.api.training import settings_of
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.studies.audit.audit import audit_federation
from fedlap_app.studies.compare import Comparison, compare_beside
from fedlap_app.studies.compare_table import answers, lines

QUICK: dict[str, Any] = {
    "rounds": 2, "local_epochs": 1, "hidden": "8", "self_training": 0, "patience": 0,
    "operator": "sym", "vectors": 12, "backend": "mask",
}  # fmt: skip


@pytest.fixture(scope="module")
def orgs() -> fedlap.Organisations:
    return fedlap.load("banks", clients=3, accounts=240, seed=4)


@pytest.fixture(scope="module")
def found(orgs: fedlap.Organisations) -> Comparison:
    return fedlap.compare(orgs, seeds=2, **QUICK)


def test_scores_are_those_of_single_runs(found: Comparison) -> None:
    for row in found.report["methods"]:
        tests = [100 * _train(seed, row["method"]).accuracy["test"] for seed in row["seeds"]]
        assert row["seeds"] == [4, 5]
        assert row["mean"] == pytest.approx(np.mean(tests))
        assert row["interval"] == pytest.approx(
            stats.t.interval(0.95, 1, np.mean(tests), stats.sem(tests))
        )


def _load(seed: int) -> fedlap.Organisations:
    return fedlap.load("banks", clients=3, accounts=240, seed=seed)


def _train(seed: int, method: str) -> fedlap.Run:
    """As in a comparison, each method leaves out of the settings what it does not read."""
    orgs = _load(seed)
    return fedlap.train(orgs, method, preset=settings_of(orgs, None, None, QUICK))


def test_differences_are_paired(found: Comparison, orgs: fedlap.Organisations) -> None:
    runs = {method: [_train(seed, method) for seed in (4, 5)] for method in ("local", "fedlap+")}
    gains = [
        100 * (joined.accuracy["test"] - alone.accuracy["test"])
        for joined, alone in zip(runs["fedlap+"], runs["local"], strict=True)
    ]
    pairs = found.report["differences"]
    (row,) = [each for each in pairs if (each["method"], each["minus"]) == ("fedlap+", "local")]
    assert row["gain_mean"] == pytest.approx(np.mean(gains))
    assert row["gain_std"] == pytest.approx(np.std(gains, ddof=1))
    for name in orgs.names:
        scores = [100 * run.scores["test"][name] for run in runs["fedlap+"]]
        assert found.organisations.loc[name, "fedlap+"] == pytest.approx(np.mean(scores))


def test_one_model_on_all_data_is_scored_at_every_organisation(found: Comparison) -> None:
    run = _train(4, "central")
    counts = [int(part.test_mask.sum()) for part in run.organisations]
    alone = fedlap.compare(_load(4), ["local", "central"], seeds=1, **QUICK)
    shares = alone.organisations["central"].to_numpy()
    assert np.average(shares, weights=counts) == pytest.approx(100 * run.accuracy["test"])


def test_price_and_exposure(found: Comparison, orgs: fedlap.Organisations) -> None:
    table = found.table
    assert list(table.index) == ["local", "fedavg", "fedlap+", "central"]
    assert table.loc["fedavg", "bytes_up_per_client"] < table.loc["fedlap+", "bytes_up_per_client"]
    assert table["vectors"].tolist() == [0, 0, 12, 0]
    run = fedlap.train(orgs, "fedlap+", **QUICK)
    assert table.loc["fedlap+", "worst_case_auc"] == audit_federation(run.settings)["auc"]


def test_processes_change_nothing(found: Comparison, orgs: fedlap.Organisations) -> None:
    again = fedlap.compare(orgs, ["fedavg", "fedlap+"], seeds=2, jobs=2, **QUICK)
    assert again.report["methods"] == found.report["methods"][1:3]
    means = again.organisations
    pd.testing.assert_frame_equal(means, found.organisations[["fedavg", "fedlap+"]])


def test_data_in_memory(orgs: fedlap.Organisations) -> None:
    edges = pd.DataFrame({"source": ["a", "b", "c", "d"], "target": ["b", "c", "d", "a"]})
    nodes = pd.DataFrame(
        {
            "id": list("abcd"),
            "label": [0, 1, 0, 1],
            "bank": list("xxyy"),
            "split": ["train", "test", "train", "test"],
            "f": [1.0, 0.0, 1.0, 0.0],
        }
    )
    parts = fedlap.split(nodes, edges, owners="bank")
    found = fedlap.compare(parts, ["local", "fedavg"], seeds=2, jobs=2, **QUICK)
    assert found.report["dataset"] == "memory"
    assert set(found.organisations.index) == {"x", "y"}


def test_one_seed_says_so(orgs: fedlap.Organisations) -> None:
    found = fedlap.compare(orgs, ["local", "fedavg"], seeds=1, **QUICK)
    assert "+-" not in repr(found)
    assert all("one seed" in line for line in answers(found.report))


def test_the_answer_needs_an_interval_above_nothing() -> None:
    def says(low: float, high: float) -> str:
        gain = {"gain_mean": (low + high) / 2, "gain_low": low, "gain_high": high}
        row = {"method": "fedavg", "minus": "local", **gain}
        who = {"organisation": "x", "gains": {"fedavg": {"gain_mean": 1.0}}}
        (line,) = answers({"differences": [row], "organisations": [who, who]})
        return line

    assert "worth it, +2.00 points" in says(1.0, 3.0)
    assert ": not certain, " in says(-1.0, 3.0)
    assert ": not worth it, " in says(-3.0, -1.0)
    assert "better at 2 of 2 organisations" in says(1.0, 3.0)


def test_files(found: Comparison, tmp_path: Path) -> None:
    found.save(tmp_path / "kept")
    names = {path.name for path in (tmp_path / "kept").iterdir()}
    assert names == {"compare.json", "compare.csv", "compare.svg"}
    kept = json.loads((tmp_path / "kept" / "compare.json").read_text())
    assert set(kept["methods"][0]) == {"method", "mean", "std", "interval", "seeds"}
    found.draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "kept" / "compare.csv").read_text().splitlines()) == 5


def test_beside_a_run(orgs: fedlap.Organisations, tmp_path: Path) -> None:
    run = fedlap.train(orgs, "fedlap+", store=tmp_path, **QUICK)
    report = compare_beside(run).report
    assert [line.split()[0] for line in lines(report)] == ["local", "fedavg", "fedlap+"]
    assert report["methods"][2]["mean"] == 100 * run.accuracy["test"]
    assert json.loads((run.folder / "compare.json").read_text())["one_seed"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"methods": ["local", "local"]}, "each of them once"),
        ({"methods": ["fedavk"]}, "the nearest valid choice is 'fedavg'"),
        ({"seeds": 0}, "at least one"),
        ({"jobs": 0}, "at least 1"),
        ({"rouns": 3}, "the nearest valid one is 'rounds'"),
    ],
)
def test_what_cannot_be_compared(
    orgs: fedlap.Organisations, given: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        fedlap.compare(orgs, **given)


def test_without_test_nodes() -> None:
    bare = fedlap.load("banks", clients=2, accounts=240, test_ratio=0.0)
    with pytest.raises(DataError, match="no test nodes"):
        fedlap.compare(bare, ["local"], seeds=1, **QUICK)


@pytest.mark.parametrize("given", [3, object, ["fedavg", 3]])
def test_what_is_no_method_is_not_compared(given):
    orgs = fedlap.load("banks", clients=2, accounts=240)
    with pytest.raises(ConfigError, match="give names, or classes derived from"):
        fedlap.compare(orgs, given if isinstance(given, list) else [given])
