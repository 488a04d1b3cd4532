import pytest

from fedlap_app.errors import DataError
from fedlap_app.graphs.benchmarks import EXTRA
from fedlap_app.graphs.datasets import DATASETS, availability, find_dataset


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("Cora", "cora"), ("bank", "banks"), ("pubmet", "pubmed"), ("arxiv", "ogbn-arxiv")],
)
def test_an_unknown_name_is_answered_with_the_nearest(typed, meant):
    with pytest.raises(DataError, match=f"did you mean '{meant}'"):
        find_dataset(typed)


def test_a_name_like_no_other_is_answered_with_all():
    with pytest.raises(DataError, match="banks, digits, cora, citeseer, pubmed, chameleon, photo"):
        find_dataset("xyzzy")


def test_generated_data_is_always_here(monkeypatch):
    monkeypatch.delenv("FEDLAP_DATA", raising=False)
    assert {name: availability(name) for name in DATASETS} == {
        "banks": "here",
        "digits": "here",
        "cora": "download",
        "citeseer": "download",
        "pubmed": "download",
        "chameleon": "download",
        "photo": "download",
        "ogbn-arxiv": "files needed",
        **dict.fromkeys(EXTRA, "files needed"),
    }


def test_files_make_a_benchmark_available(fedlap_data):
    assert availability("cora") == "here"
