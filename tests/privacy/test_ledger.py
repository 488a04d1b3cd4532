"""Ledgers of jobs, and the report that is made of them."""

import json

import pytest
from click.testing import CliRunner

from fedlap_app.cli import main
from fedlap_app.errors import DataError
from fedlap_app.privacy.leakage import worst_case_auc
from fedlap_app.privacy.ledger import FILE, FINISHED, RECEIVED, SENT, Entry, Ledger
from fedlap_app.privacy.tally import Tally
from fedlap_app.studies.audit.ledger_report import job_report, report_text

FACTS = {"organisation": "bank-a", "phase": "offline", "job": "j", "graph": "g", "nodes": 200,
         "density": 0.02}  # fmt: skip


def block(values):
    return Entry(SENT, "block products", ("nobody",), ("recipient",), ("ab12",), 2, values)


def small(values):
    return Entry(RECEIVED, "small sums", ("all members",), (), ("cd34",), 1, values)


@pytest.mark.parametrize("durable", [True, False])
def test_a_step_is_entered_once(tmp_path, durable):
    ledger = Ledger(tmp_path, FACTS, durable=durable)
    ledger.enter(1, 3, [block(30), small(6)])
    for _ in range(2):
        ledger.enter(2, 6, [block(40)])
        ledger = Ledger.open(tmp_path, dict, durable=durable)
    ledger.enter(3, 6, [small(5)], FINISHED)
    found = json.loads((tmp_path / FILE).read_text())
    assert found["vectors"] == 6
    assert found["state"] == "finished"
    assert "complete" not in found
    sent, received = found["entries"]
    assert (sent["messages"], sent["values"]) == (4, 70)
    assert (received["messages"], received["values"]) == (2, 11)
    assert sent["readable_by"] == ["nobody"]
    assert sent["sum_readable_by"] == ["recipient"]
    assert sent["key_ids"] == ["ab12"]


def test_a_job_that_begins_again_leaves_nothing_of_the_old_ledger(tmp_path):
    ledger = Ledger(tmp_path, FACTS, durable=False)
    ledger.enter(0, 3, [block(30), small(6)])
    again = Ledger(tmp_path, FACTS, durable=False)
    again.enter(0, 1, [small(2)])
    found = json.loads((tmp_path / FILE).read_text())
    assert found["vectors"] == 1
    assert len(found["entries"]) == 1


@pytest.mark.parametrize("text", ["", "{", '{"format": 2}', '{"format": 1, "entries": [{}]}'])
def test_a_damaged_ledger_begins_anew_and_says_so(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    ledger = Ledger.open(tmp_path, lambda: FACTS, durable=False)
    ledger.enter(7, 9, [block(1)])
    found = json.loads((tmp_path / FILE).read_text())
    assert found["complete"] is False
    assert found["vectors"] == 9


@pytest.fixture
def store(tmp_path):
    """A store with two jobs of one graph, and the count of a third whose ledger is gone."""
    root = tmp_path / "org" / "store"
    for number, vectors in enumerate((4, 8)):
        facts = {**FACTS, "job": f"j{number}"}
        ledger = Ledger(root / "jobs" / f"offline-j{number}", facts, durable=False)
        ledger.enter(1, vectors, [block(10 * vectors), small(6)], FINISHED)
        Tally(root, durable=False).note("g", f"j{number}", vectors)
    Tally(root, durable=False).note("g", "gone", 8)
    return root


def test_the_report_of_a_store_adds_up_all_jobs(store):
    for path in (store, store.parent):
        report = job_report(path)
        assert report["organisation"] == "bank-a"
        (graph,) = report["graphs"]
        assert graph["vectors"] == 20
        assert graph["vectors_of_these_jobs"] == 12
        assert graph["auc"] == worst_case_auc(20, 200, 0.02)
        (sent,) = report["sent"]
        assert sent["values"] == 120
        assert sent["messages"] == 4
    text = report_text(report)
    assert "worst-case attacker" in text
    assert "nobody; the sum by recipient" in text


def test_the_report_of_one_job_knows_of_the_others(store):
    folder = store / "jobs" / "offline-j0"
    for path in (folder, folder / FILE):
        report = job_report(path)
        assert [job["job"] for job in report["jobs"]] == ["j0"]
        assert report["graphs"][0]["vectors"] == 20
        assert report["graphs"][0]["vectors_of_these_jobs"] == 4


def test_a_ledger_alone_is_enough(store, tmp_path):
    copy = tmp_path / "elsewhere.json"
    copy.write_text((store / "jobs" / "offline-j1" / FILE).read_text())
    assert job_report(copy)["graphs"][0]["vectors"] == 8


@pytest.mark.parametrize("text", ["nonsense", "[]", '{"format": 99}', '{"format": 1}'])
def test_what_is_no_ledger_is_refused(tmp_path, text):
    path = tmp_path / FILE
    path.write_text(text)
    with pytest.raises(DataError, match="ledger"):
        job_report(path)


def test_an_empty_place_is_refused(tmp_path):
    with pytest.raises(DataError, match="There is no"):
        job_report(tmp_path / "absent")
    with pytest.raises(DataError, match=r"holds no ledger\.json"):
        job_report(tmp_path)


def test_the_command_speaks_and_gives_json(store):
    done = CliRunner().invoke(main, ["audit", "--job", str(store)])
    assert done.exit_code == 0
    assert "vectors exchanged  20 (12 in the jobs above)" in done.stdout
    done = CliRunner().invoke(main, ["audit", "--job", str(store), "--json"])
    assert json.loads(done.stdout)["graphs"][0]["vectors"] == 20


def test_the_ledgers_are_not_mixed_with_a_forecast(store):
    done = CliRunner().invoke(main, ["audit", "--job", str(store), "--vectors", "31"])
    assert done.exit_code == 2
    assert "give no folder and no setting with it" in done.output
