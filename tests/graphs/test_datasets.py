import numpy as np
import pytest

from fedlap_app.errors import DataError
from fedlap_app.graphs.benchmarks import EXTRA
from fedlap_app.graphs.datasets import DATASETS, Request, availability, find_dataset


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
        "ogbn-arxiv-generated": "files needed",
        **dict.fromkeys(EXTRA, "files needed"),
    }


def test_files_make_a_benchmark_available(fedlap_data):
    assert availability("cora") == "here"


@pytest.mark.slow
def test_generated_features_tell_classes_apart_and_follow_the_seed(fedlap_data):
    make = find_dataset("ogbn-arxiv-generated").make
    first, again, other = (make(Request(10, seed, 0, 0, directed=False)) for seed in (0, 0, 1))
    assert first.features.shape == (169343, 128)
    assert np.array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)
    # Means of two large classes are as far apart as drawn: 0.25 * sqrt(2 * 128), but for noise.
    large = np.argsort(np.bincount(first.labels))[-2:]
    a, b = (first.features[first.labels == label].mean(axis=0) for label in large)
    assert np.linalg.norm(a - b) == pytest.approx(0.25 * np.sqrt(256), rel=0.25)
