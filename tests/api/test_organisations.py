"""Organisations as objects: benchmarks, folders, errors."""

import numpy as np
import pytest

import fedlap_app as fedlap
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.federation import DataSpec, load_federation


def test_a_benchmark_is_that_of_the_command_line(orgs):
    parts = load_federation(DataSpec(dataset="banks", clients=3, accounts=240))
    assert [part.fingerprint() for part in orgs] == [part.fingerprint() for part in parts]
    assert len(orgs) == 3
    assert orgs.names == ("bank-00", "bank-01", "bank-02")
    assert orgs["bank-01"] is orgs[1]
    assert "bank-02" in orgs
    assert "bank-03" not in orgs


def test_a_wrong_name_names_the_nearest(orgs):
    with pytest.raises(DataError, match="nearest name is 'bank-01'"):
        orgs["bank-1"]
    for given, kind in ((3, IndexError), (1.5, TypeError), (None, TypeError)):
        with pytest.raises(kind, match="give a name, or a number below 3"):
            orgs[given]


def test_a_path_or_a_number_of_another_kind_is_told(orgs):
    for call in (fedlap.read, fedlap.open_run, orgs.save):
        with pytest.raises(ConfigError, match=" = 3 is no path"):
            call(3)
    with pytest.raises(ConfigError, match=r"clients = 2\.5 is not a whole number"):
        fedlap.load("banks", clients=2.5)
    found = fedlap.load("banks", clients=np.int64(3), accounts=np.int64(240))
    assert [part.fingerprint() for part in found] == [part.fingerprint() for part in orgs]


def test_the_text_says_who_has_how_much(orgs):
    text = repr(orgs)
    assert text.startswith("3 organisations of banks (auto partition, seed 0): 240 nodes")
    assert f"bank-00: {orgs[0].num_nodes} nodes" in text


def test_folders_give_the_same_parts_back(orgs, tmp_path):
    orgs.save(tmp_path / "orgs")
    again = fedlap.read(tmp_path / "orgs")
    assert [part.fingerprint() for part in again] == [part.fingerprint() for part in orgs]
    with pytest.raises(DataError, match="is not empty"):
        orgs.save(tmp_path / "orgs")
    with pytest.raises(DataError, match="no folder"):
        fedlap.read(tmp_path / "nowhere")


def test_the_seed_divides_the_data():
    first, other = (fedlap.load("digits", clients=4, seed=seed) for seed in (0, 1))
    assert not np.array_equal(first[0].ids, other[0].ids)
    assert other.seed == 1
