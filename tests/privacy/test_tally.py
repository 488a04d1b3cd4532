"""Counts of exchanged vectors, by graph."""

import json
from dataclasses import replace

import numpy as np
import pytest

from fedlap_app.errors import RunError
from fedlap_app.graphs.federation import DataSpec, load_federation
from fedlap_app.privacy import tally
from fedlap_app.privacy.tally import FILE, Tally, graph_mark


@pytest.fixture(scope="module")
def part():
    return load_federation(DataSpec(dataset="banks", accounts=200, clients=2))[0]


def turned(part):
    """The same organisation with its own nodes in the opposite order."""
    n = part.num_nodes
    place = np.concatenate([np.arange(n)[::-1], np.arange(n, n + part.num_external)])
    return replace(
        part,
        ids=part.ids[::-1],
        edge_index=place[part.edge_index],
        features=np.asarray(part.features)[::-1],
        labels=part.labels[::-1],
        train_mask=part.train_mask[::-1],
        val_mask=part.val_mask[::-1],
        test_mask=part.test_mask[::-1],
    )


def test_the_mark_is_that_of_nodes_and_edges(part):
    mark = graph_mark(part)
    assert graph_mark(turned(part)) == mark
    zeros = np.zeros_like(np.asarray(part.features))
    names = tuple(f"g{i}" for i in range(part.num_features))
    assert graph_mark(replace(part, features=zeros, feature_names=names)) == mark
    assert graph_mark(replace(part, edge_weight=2 * part.edge_weight)) == mark
    inside = (part.edge_index < part.num_nodes).all(axis=0)
    source, target = part.edge_index[:, np.argmax(inside)]
    same = [np.isin(end, (source, target)) for end in part.edge_index]
    left = ~(same[0] & same[1])
    fewer = replace(part, edge_index=part.edge_index[:, left], edge_weight=part.edge_weight[left])
    assert graph_mark(fewer) != mark
    renamed = np.where(np.arange(part.num_nodes) == 0, "somebody else", part.ids)
    assert graph_mark(replace(part, ids=renamed)) != mark


@pytest.mark.parametrize("durable", [True, False])
def test_a_job_counts_once_and_all_jobs_count(tmp_path, durable):
    counted = Tally(tmp_path, durable=durable)
    assert counted.exchanged("g") == 0
    for job, vectors in (("a", 10), ("a", 20), ("a", 20), ("a", 10), ("b", 5)):
        counted.note("g", job, vectors)
    again = Tally(tmp_path, durable=durable)
    assert again.exchanged("g") == 25
    assert again.exchanged("g", besides="a") == 5
    assert again.exchanged("other") == 0
    again.note("other", "c", 7)
    assert counted.exchanged("g") == 25
    assert counted.exchanged("other") == 7


def test_old_jobs_are_folded_and_not_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(tally, "_MOST_JOBS", 3)
    monkeypatch.setattr(tally, "_MOST_GRAPHS", 2)
    counted = Tally(tmp_path, durable=False)
    for number in range(10):
        counted.note("g", f"job{number}", 2)
    assert counted.exchanged("g") == 20
    assert len(json.loads((tmp_path / FILE).read_text())["graphs"]["g"]["jobs"]) == 3
    for graph in ("h", "i"):
        counted.note(graph, "job", 1)
    assert counted.exchanged("i") == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"graphs": 3}', '{"graphs": {"g": {"jobs": {}}}}']
)
def test_a_damaged_count_is_not_taken_for_zero(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    told = r"^consent\.json of the store is damaged: restore .*; deleting it forgets how many"
    with pytest.raises(RunError, match=told):
        Tally(tmp_path, durable=True).exchanged("g")


def test_two_processes_see_each_others_counts(tmp_path):
    first, second = (Tally(tmp_path, durable=False) for _ in range(2))
    first.note("g", "a", 3)
    second.note("g", "b", 4)
    first.note("g", "c", 5)
    assert first.exchanged("g") == second.exchanged("g") == 12


def test_a_deleted_file_is_not_written_to(tmp_path):
    counted = Tally(tmp_path, durable=False)
    counted.note("g", "a", 3)
    (tmp_path / FILE).unlink()
    counted.note("g", "b", 4)
    assert json.loads((tmp_path / FILE).read_text())["graphs"]["g"]["jobs"] == {"b": 4}


def test_nobody_else_reads_the_count(tmp_path):
    for durable in (True, False):
        root = tmp_path / str(durable)
        Tally(root, durable=durable).note("g", "a", 3)
        assert (root / FILE).stat().st_mode & 0o077 == 0
