"""The paper's tables: settings of every cell, what is kept, and what is made of it."""

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from fedlap_app.cli import main
from fedlap_app.errors import ConfigError
from fedlap_app.studies.tables import cells as cells_module
from fedlap_app.studies.tables.bench import bench_table
from fedlap_app.studies.tables.cells import cells_of, measure
from fedlap_app.studies.tables.experiments import DATASETS, EXPERIMENTS, experiment
from fedlap_app.studies.tables.recipes import (
    paper_figures,
    partition_of,
    protocols,
    settings_for,
    systems,
)
from fedlap_app.studies.tables.report import _against_paper, paper_of
from fedlap_app.studies.trials import Result

RANDOM = {"partition": "random", "clients": 10, "seed": 3}


def result(method, seed, test):
    return Result(method, seed, {"test": test}, {}, 1e6, 2e6, 1.5)


@pytest.fixture
def quick(monkeypatch):
    """Trainings that take no time: the score follows from method and seed."""
    asked = []

    def run(trials, folder, jobs):
        for number, trial in enumerate(trials):
            asked.append(trial)
            s = trial.settings
            gain = 0.1 if s.method == "fedlap+" else 0.0
            yield number, result(s.method, s.seed, 0.7 + gain + 0.01 * s.seed)

    monkeypatch.setattr(cells_module, "run_trials", run)
    return asked


def table(out, **more):
    wanted = {"protocol": "fedlap", "seeds": range(2), "datasets": ["cora"], "say": print}
    wanted |= {"methods": ["fedsgd", "fedlap+", "central"]}
    return bench_table(experiment("table1"), out=out, **{**wanted, **more})


@pytest.mark.parametrize("protocol", protocols())
def test_every_system_has_settings_for_every_data_set(protocol):
    for dataset in DATASETS:
        for system in systems():
            found = settings_for(system, dataset, protocol, RANDOM)
            assert (found.method, found.dataset, found.seed) == (system.method, dataset, 3)


def test_the_papers_protocol_has_one_split_the_last_round_and_two_softmaxes():
    (fedsgd,) = systems(["fedsgd"])
    paper = settings_for(fedsgd, "cora", "paper", RANDOM)
    assert (paper.split_seed, paper.kept_round, paper.softmax) == (54, "last", "twice")
    assert (paper.rounds, paper.learning_rate, paper.hidden) == (75, 0.005, "32,16")
    fresh = settings_for(fedsgd, "cora", "fedlap", RANDOM)
    assert (fresh.split_seed, fresh.kept_round, fresh.softmax) == (-1, "best", "once")


def test_louvain_takes_the_place_of_the_columns_partition():
    assert partition_of("louvain-20-40-40") == "louvain"
    (column,) = experiment("table2", partition="louvain").columns
    assert column.changes["partition"] == "louvain"
    with pytest.raises(ConfigError, match="nearest one is 'paper'"):
        partition_of("papr")
    with pytest.raises(ConfigError, match=r"nearest one is 'fedgcn'"):
        systems(["fedgnc"])


def test_a_killed_run_loses_no_finished_cell(quick, tmp_path, monkeypatch):
    systems_ = systems(["fedsgd", "fedlap+"])
    cells = cells_of(experiment("table1", clients=[10]), "fedlap", ["cora"], systems_, range(3))
    whole = cells_module.run_trials

    def killed(trials, folder, jobs):
        for number, each in enumerate(whole(trials, folder, jobs)):
            if number == 4:
                raise KeyboardInterrupt
            yield each

    monkeypatch.setattr(cells_module, "run_trials", killed)
    with pytest.raises(KeyboardInterrupt):
        measure(cells, tmp_path, 1, print)
    assert len(list(tmp_path.glob("*.json"))) == 4
    monkeypatch.setattr(cells_module, "run_trials", whole)
    before = len(quick)
    found = measure(cells, tmp_path, 1, print)
    assert len(quick) - before == 2
    assert len(found) == 6
    next(tmp_path.glob("*.json")).write_text("{", encoding="utf-8")
    before = len(quick)
    assert measure(cells, tmp_path, 1, print) == found
    assert len(quick) - before == 1


def test_a_bound_on_the_whole_graph_is_one_cell_for_all_columns(quick, tmp_path):
    table(tmp_path, methods=["central"], seeds=[0])
    assert len(quick) == 1


def test_rows_hold_ours_the_papers_and_what_is_best(quick, tmp_path):
    report = table(tmp_path)
    rows = {(row["system"], row["at"]): row for row in report["rows"]}
    assert len(rows) == 9
    row = rows["fedsgd", 10]
    assert row["paper"] == paper_figures()["table1"]["cora"]["FedSGD GNN"]["10"][0] == 65.26
    assert row["difference"] == pytest.approx(70.5 - 65.26)
    assert row["gain_mean"] == pytest.approx(-10.0)
    assert (row["gain_low"], row["gain_high"]) == pytest.approx((-10.0, -10.0))
    assert rows["fedlap+", 5]["best"]
    assert not rows["fedsgd", 5]["best_private"]
    for suffix in ("csv", "json", "md", "tex", "png", "svg"):
        assert (tmp_path / f"table1.{suffix}").stat().st_size > 100
    with (tmp_path / "table1.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 9
    text = (tmp_path / "table1.md").read_text(encoding="utf-8")
    assert "**80.50 ± 0.71** (79.31, +1.19" in text
    assert r"\textbf{$80.50\pm 0.71$}" in (tmp_path / "table1.tex").read_text(encoding="utf-8")


def test_significance_is_that_of_welch():
    ours, theirs = np.array([70.0, 71.0, 73.0]), (65.26, 1.37)
    found = _against_paper(ours.mean(), ours.std(ddof=1), 3, theirs)
    exact = stats.ttest_ind_from_stats(
        ours.mean(), ours.std(ddof=1), 3, *theirs, 10, equal_var=False
    )
    assert found["p"] == pytest.approx(exact.pvalue)
    assert _against_paper(70.0, None, 1, theirs)["p"] is None


def test_the_papers_lambda_is_found_by_its_value():
    (system,) = systems(["fedlap+"])
    assert paper_of(experiment("lambda"), "cora", system, 5.0) == (79.79, None)
    changes = EXPERIMENTS["lambda"].changes_of(experiment("lambda").columns[3], "fedlap")
    assert changes["row-smoothing"] == 5.0
    assert "smoothing" not in changes


def test_the_command_prints_and_goes_on(quick, tmp_path):
    arguments = [
        "bench", "table2", "--datasets", "cora", "--methods", "fedsgd,fedlap+", "--seeds", "1",
        "--out", str(tmp_path), "--json",
    ]  # fmt: skip
    first = CliRunner().invoke(main, arguments)
    assert first.exit_code == 0, first.output
    assert len(quick) == 6
    report = json.loads((tmp_path / "table2.json").read_text(encoding="utf-8"))
    assert {row["at"] for row in report["rows"]} == {"louvain", "random", "kmeans"}
    CliRunner().invoke(main, arguments)
    assert len(quick) == 6
