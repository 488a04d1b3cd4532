"""What the server's report holds, and what it must not hold."""

import json
import re
import shutil

import numpy as np
import pytest

import fedlap_app as fedlap
from fedlap_app.privacy.density import own_density
from fedlap_app.reports.member_facts import of_part
from fedlap_app.reports.member_report import figures
from fedlap_app.reports.writing import policy_of

_MARKS = ("Class-mark", "Feature-mark", "Node-mark")


def said(path):
    """All of a page but the library, which is the same in all of them."""
    text = path.read_text()
    return re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


@pytest.fixture(scope="module")
def server(run, tmp_path_factory):
    return said(run.report(tmp_path_factory.mktemp("page") / "report.html"))


@pytest.fixture(scope="module")
def own(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    return {
        name: said(run.report(folder / f"{name}.html", organisation=name))
        for name in run.organisations.names
    }


def test_the_server_s_report_holds_no_class_feature_or_node(server, own):
    assert not [mark for mark in _MARKS if mark in server]
    assert all("Class-mark-one" in page for page in own.values())  # so the marks would be seen


def test_the_server_s_report_holds_no_value_of_an_organisation(run, server):
    private = []
    for part in run.organisations:
        basis = run.basis(part.name)
        table = run.predict(part.name)
        test = table[table.split == "test"]
        private += [f"{value:.6g}" for value in basis.eigenvalues[1:]]
        private += [f"{100 * (test.label == test.predicted).mean():.2f} %"]
        private += [f"{own_density(part):.2g}", str(part.num_nodes)]
    shared = {f"{100 * value:.2f} %" for value in run.accuracy.values()}
    for row in run.history.itertuples():
        shared |= {f"{row.train_accuracy:.4g}", f"{row.val_accuracy:.4g}"}
    words = set(re.findall(r"[\w.+-]+(?: %)?", server))
    found = [value for value in private if value in words and value not in shared]
    assert not found


def test_scores_of_single_organisations_in_the_files_of_a_run_reach_no_page(run, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    summary = json.loads((folder / "summary.json").read_text())
    name = run.organisations.names[0]
    summary["client_accuracy"] = {name: {"train": 0.7123456, "val": 0.7, "test": 0.7123456}}
    summary["surprise"] = "Surprise-mark"
    (folder / "summary.json").write_text(json.dumps(summary))
    found = {
        "dataset": "x", "partition": "owner", "clients": 3, "score": "accuracy", "one_seed": True,
        "methods": [], "differences": [],
        "organisations": [{"organisation": name, "means": {"local": 71.23456}}],
        "rows": [{"method": "local", "score_mean": 66.5, "secret": "Surprise-mark"}],
    }  # fmt: skip
    (folder / "compare.json").write_text(json.dumps(found))
    page = said(fedlap.report(folder))
    assert "66.50 %" in page
    assert not [mark for mark in ("71.23", "0.7123", "Surprise-mark") if mark in page]


def test_an_organisation_s_report_says_its_own_accuracy_and_what_it_gave(run):
    part = run.organisations[0]
    stores = [run.place.folder / "stores" / part.name]
    facts = of_part(part, run.kept_by(part), stores, policy_of(run, part.name))
    table = run.predict(part.name)
    test = table[table.split == "test"]
    shown = figures(facts)[0].value
    assert shown.startswith(f"{100 * (test.label == test.predicted).mean():.2f} %")
    assert facts.used == {"vectors": 12}
    assert np.array_equal(facts.basis.eigenvalues, run.basis(part.name).eigenvalues)


def test_pages_need_no_network_and_are_small(run):
    for path in (run.report(), run.report(organisation=run.organisations.names[0])):
        assert path.stat().st_size < 3_000_000
        page = said(path)
        assert not re.search(r"""(?:src|href)=["'](?!#|data:)""", page)
        assert "default-src 'none'" in page


def test_only_the_owner_may_read_an_organisation_s_report(run):
    assert run.report(organisation="bank-01").stat().st_mode & 0o077 == 0
