import dataclasses
import json
import shutil

import pytest

import fedlap_app as fedlap
from fedlap_app.errors import DataError
from fedlap_app.privacy.leakage import largest_p_plus_r, worst_case_auc
from fedlap_app.reports import verdicts
from fedlap_app.reports.exposure import Target, verdict
from fedlap_app.reports.planned import plan_of
from fedlap_app.reports.run_facts import RunFacts
from tests.reports.conftest import QUICK


@pytest.fixture(scope="module")
def facts(run):
    return RunFacts.read(run.folder)


def test_the_plan_for_public_sizes_is_what_was_sent(facts):
    plan = plan_of(facts)
    assert plan.measured_up == plan.up
    assert plan.measured_down == plan.down
    assert plan.measured_trips == plan.trips


def test_slots_are_the_nodes_rounded_up(facts, run):
    for part in run.organisations:
        assert part.num_nodes <= facts.offline["slots"][part.name] <= 2 * part.num_nodes + 4096


def test_the_bound_is_the_last_number_that_keeps_edges_hidden():
    target = Target.assumed("a", 1000, 4)
    density = 4 / 999
    assert largest_p_plus_r(target.bound, 1000, density) <= 1
    assert largest_p_plus_r(target.bound + 1, 1000, density) > 1
    assert target.auc(50) == worst_case_auc(50, 1000, density)
    assert f"above the {target.bound}" in verdict(target, target.bound + 1)
    assert f"within the {target.bound}" in verdict(target, target.bound)


def test_four_figures_with_a_verdict_each(facts):
    shown = verdicts.four(facts, plan_of(facts))
    assert len(shown) == 4
    assert all(figure.verdict for figure in shown)
    assert f"{100 * facts.test:.2f} %" in shown[0].value


def test_a_comparison_says_what_joining_gains(facts, run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    rows = [{"method": "local", "score_mean": 50.0}, {"method": "fedlap+", "score_mean": 61.5}]
    report = {"score": "accuracy", "one_seed": True, "rows": rows, "differences": []}
    (folder / "compare.json").write_text(json.dumps(report))
    figure = verdicts.against_what(RunFacts.read(folder))
    assert figure.value == "+11.50 points over local"
    assert "one seed" in figure.verdict


def test_sizes_of_a_reused_basis_are_those_of_the_run_that_made_it(facts, run, tmp_path):
    first, again, damaged = (tmp_path / name for name in ("first", "again", "another"))
    for folder in (first, again, damaged):
        shutil.copytree(run.folder, folder)
    told = json.loads((again / "offline.json").read_text())
    (again / "offline.json").write_text(json.dumps({**told, "reused": True, "slots": {}}))
    (damaged / "offline.json").write_text("{")
    assert verdicts.learned(RunFacts.read(again)) == verdicts.learned(facts)
    shutil.rmtree(first)
    assert "an earlier run" in verdicts.learned(RunFacts.read(again)).verdict


def test_the_server_does_not_say_which_round_it_does_not_know(facts):
    hidden = dataclasses.replace(facts, best_round=None)
    assert "each organisation keeps the round" in verdicts.how_good(hidden).verdict


def test_a_run_of_another_release_or_with_missing_files_is_shown_as_far_as_it_goes(run, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    shutil.copy(run.folder / "config.json", folder)
    (folder / "summary.json").write_text(json.dumps({"accuracy": {"test": 0.5}}))
    page = fedlap.report(folder).read_text()
    assert "not compared" in page


def test_an_unfinished_run_and_a_damaged_file_are_told(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    (folder / "summary.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        fedlap.report(folder)
    (folder / "summary.json").unlink()
    with pytest.raises(DataError, match="no finished run"):
        fedlap.report(folder)


def test_several_runs_in_one_page(run, folders, tmp_path):
    alone = fedlap.train(
        fedlap.read(folders), "local", **{k: v for k, v in QUICK.items() if k != "vectors"}
    )
    page = fedlap.report([run, alone], tmp_path / "both.html").read_text()
    assert "Runs compared" in page
    for each in (run, alone):
        assert f"{each.summary['method']}, {folders.name}, seed 0" in page
