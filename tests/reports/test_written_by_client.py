"""A deployed organisation's launcher writes its report; nothing that goes wrong there matters."""

import shutil

import pytest

from client_app.launch import is_due, write_report


class Context:
    def __init__(self, **config):
        self.node_config = config


@pytest.fixture
def deployed(run, folders, tmp_path):
    """A folder with the store that a run left."""
    folder = tmp_path / "bank-00"
    shutil.copytree(folders / "bank-00", folder)
    shutil.copytree(run.place.folder / "stores" / "bank-00", folder / "store")
    return folder


def test_a_newer_model_makes_a_report_once(deployed):
    context = Context(**{"data-dir": str(deployed)})
    assert is_due(deployed, deployed / "store")
    write_report(context)
    page = deployed / "report.html"
    assert "Class-mark-one" in page.read_text()
    assert page.stat().st_mode & 0o077 == 0
    assert not is_due(deployed, deployed / "store")


def test_the_store_may_be_elsewhere(deployed, tmp_path):
    shutil.move(deployed / "store", tmp_path / "elsewhere")
    write_report(Context(**{"data-dir": str(deployed)}))
    assert not (deployed / "report.html").exists()
    write_report(Context(**{"data-dir": str(deployed), "store-dir": str(tmp_path / "elsewhere")}))
    assert (deployed / "report.html").exists()


def test_what_goes_wrong_is_logged_and_stops_nothing(deployed, caplog):
    (deployed / "nodes.csv").write_text("nonsense")
    write_report(Context(**{"data-dir": str(deployed)}))
    assert "could not be written" in caplog.text
    write_report(Context())
