import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fedlap_app
from fedlap_app.errors import DataError
from fedlap_app.graphs import benchmarks
from fedlap_app.graphs.benchmarks import is_here, load_benchmark
from fedlap_app.store import places

ROOT = Path(fedlap_app.__file__).parents[1]
# Nodes, undirected edges, features, classes and edge homophily as published.
TABLE = {
    "cora": (2708, 5278, 1433, 7, 0.810),
    "citeseer": (3327, 4552, 3703, 6, 0.736),
    "pubmed": (19717, 44324, 500, 3, 0.802),
    "chameleon": (2277, 31371, 2325, 5, 0.230),
    "photo": (7650, 119081, 745, 8, 0.827),
    "ogbn-arxiv": (169343, 1157799, 0, 40, 0.654),
    "acm": (3025, 13128, 1870, 3, 0.821),
    "coauthor_cs": (18333, 81894, 6805, 15, 0.808),
    "uai": (3067, 28308, 4973, 19, 0.364),
    "actor": (7600, 26659, 932, 5, 0.217),
    "chameleon_filtered": (890, 8854, 2325, 5, 0.236),
    "minesweeper": (10000, 39402, 7, 2, 0.683),
}


SLOW = ("ogbn-arxiv", "coauthor_cs")


@pytest.fixture(scope="module")
def module_home(tmp_path_factory):
    return tmp_path_factory.mktemp("benchmarks-home")


@pytest.fixture
def prepared(fedlap_data, module_home, monkeypatch):
    """One cache for the tests that only read: reading raw files takes seconds."""
    monkeypatch.setenv("FEDLAP_HOME", str(module_home))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in TABLE],
)
def test_sizes_are_the_published_ones(prepared, name):
    graph = load_benchmark(name)
    source, target = graph.labels[graph.edge_index]
    assert (
        graph.num_nodes,
        graph.edge_weight.size // 2,
        graph.features.shape[1],
        len(graph.classes),
        round(float((source == target).mean()), 3),
    ) == TABLE[name]


def test_chameleon_keeps_its_direction(prepared):
    # 36,101 lines, 50 of them self loops.
    assert load_benchmark("chameleon", directed=True).edge_weight.size == 36051


def test_citeseer_has_48_isolated_nodes(prepared):
    graph = load_benchmark("citeseer")
    assert (np.bincount(graph.edge_index[0], minlength=graph.num_nodes) == 0).sum() == 48


def test_the_second_load_needs_no_torch_and_no_raw_files(fedlap_data, own_home, monkeypatch):
    first = load_benchmark("cora")
    monkeypatch.delenv("FEDLAP_DATA")
    assert is_here("cora")
    code = (
        "import sys; from fedlap_app.graphs.benchmarks import load_benchmark;"
        "g = load_benchmark('cora'); assert 'torch' not in sys.modules; print(g.edge_weight.size)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert int(done.stdout) == first.edge_weight.size
    assert [path.suffix for path in sorted((own_home / "cache" / "datasets").iterdir())] == [
        ".graph",
        ".lock",
    ]


def test_a_damaged_cache_is_prepared_again(fedlap_data):
    load_benchmark("cora")
    (file,) = (places.cache_dir() / "datasets").glob("cora*.graph")
    file.write_bytes(file.read_bytes()[:1000])
    assert load_benchmark("cora").num_nodes == 2708


def test_without_files_and_network_one_sentence_says_what_to_do(monkeypatch, capfd):
    def refuse(*args, **kwargs):
        raise OSError("no network")

    monkeypatch.delenv("FEDLAP_DATA", raising=False)
    monkeypatch.setattr(benchmarks.urllib.request, "urlopen", refuse)
    assert not is_here("cora")
    with pytest.raises(DataError, match=r"Cora/raw of a folder and set FEDLAP_DATA") as caught:
        load_benchmark("cora")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_arxiv_is_only_read_from_files(monkeypatch, tmp_path):
    monkeypatch.setenv("FEDLAP_DATA", str(tmp_path))
    with pytest.raises(DataError, match="not downloaded by FedLap"):
        load_benchmark("ogbn-arxiv")


def test_junk_in_the_raw_files_is_one_sentence(monkeypatch, tmp_path):
    raw = tmp_path / "Photo" / "raw"
    raw.mkdir(parents=True)
    (raw / "amazon_electronics_photo.npz").write_bytes(b"junk")
    monkeypatch.setenv("FEDLAP_DATA", str(tmp_path))
    with pytest.raises(DataError, match="raw files of 'photo' cannot be read"):
        load_benchmark("photo")


def test_the_data_folder_is_not_written_to(fedlap_data):
    before = sorted(path.name for path in (fedlap_data / "Cora").iterdir())
    load_benchmark("cora")
    assert sorted(path.name for path in (fedlap_data / "Cora").iterdir()) == before
