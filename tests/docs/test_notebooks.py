"""The notebooks of examples/ run from the first cell to the last."""

from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "examples" / "notebooks"


def executed(name, folder):
    nbformat = pytest.importorskip("nbformat", reason="pip install -e .[dev]")
    from nbclient import NotebookClient

    book = nbformat.read(NOTEBOOKS / name, as_version=4)
    NotebookClient(book, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return book


def shown(book):
    return [out for cell in book.cells for out in cell.get("outputs", [])]


@pytest.mark.slow
def test_banks_from_zero_to_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    book = executed("banks.ipynb", tmp_path)
    pictures = [out for out in shown(book) if "image/png" in out.get("data", {})]
    assert len(pictures) == 2
    for name in ("banks-report.html", "bank-00-report.html"):
        assert (tmp_path / name).stat().st_size > 500_000


@pytest.mark.slow
def test_cora_with_all_methods(fedlap_data, tmp_path):
    executed("cora.ipynb", tmp_path)
    assert (tmp_path / "cora-comparison" / "report.html").is_file()
