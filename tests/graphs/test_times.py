"""Parts as they were at a moment, and splits that train on the past."""

import csv

import numpy as np
import pytest

from fedlap_app.errors import DataError
from fedlap_app.graphs.agreement import check_federation
from fedlap_app.graphs.folder import read_folder, write_folder
from fedlap_app.graphs.times import read_dated, split_by_time
from tests.graphs.conftest import cut_randomly, random_graph


def with_times(folder, stem, time_of):
    """Add a column of times to a table of a folder."""
    path = folder / f"{stem}.csv"
    with path.open() as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "time"])
        writer.writeheader()
        writer.writerows({**row, "time": time_of(row)} for row in rows)


def edge_time(row):
    """The same on both sides."""
    first, second = sorted((row["source"], row["target"]))
    return (7 * int(first[1:]) + 3 * int(second[1:])) % 50


@pytest.fixture
def dated(tmp_path):
    """Three organisations whose edges have times."""
    found = []
    for part in cut_randomly(random_graph(nodes=60, edges=150, seed=2)):
        folder = tmp_path / part.name
        write_folder(part, folder)
        with_times(folder, "edges", edge_time)
        found.append(read_dated(folder, read_folder(folder)))
    return found


def test_parts_at_a_moment_fit_together_and_hold_what_was_there(dated):
    parts = [each.until(25.0) for each in dated]
    assert check_federation(parts) == []
    for each, part in zip(dated, parts, strict=True):
        edges = {tuple(pair) for pair in _named(each.part)[:, each.edges <= 25.0].T.tolist()}
        assert {tuple(pair) for pair in _named(part).T.tolist()} == edges
        ends = {end for pair in edges for end in pair}
        always = set(each.part.ids[np.isinf(each.nodes)])
        assert set(part.ids) == (ends & set(each.part.ids)) | always


def _named(part):
    return np.concatenate([part.ids, part.external_ids])[part.edge_index]


def test_training_nodes_come_before_validation_and_test_nodes(dated):
    found = split_by_time(dated, 0.5, 0.2)
    assert check_federation(found.past) == []
    for each, now, past in zip(dated, found.now, found.past, strict=True):
        times = each.nodes
        assert times[now.train_mask].max() < times[now.val_mask].min()
        assert times[now.val_mask].max() <= found.moment < times[now.test_mask].min()
        assert not past.test_mask.any()
        assert set(now.ids) - set(past.ids) == set(each.part.ids[times > found.moment])
    labelled = sum((each.part.labels >= 0).sum() for each in dated)
    train = sum(part.train_mask.sum() for part in found.past)
    assert abs(train / labelled - 0.5) < 0.15  # many came at one time


def test_a_node_is_there_from_its_own_time_or_its_first_edge(tmp_path):
    part = cut_randomly(random_graph(nodes=30, edges=60, seed=3))[0]
    write_folder(part, tmp_path)
    with_times(tmp_path, "nodes", lambda row: 5)
    with_times(tmp_path, "edges", lambda row: 1 if row["source"] == part.ids[1] else 9)
    found = read_dated(tmp_path, read_folder(tmp_path))
    touched = {end for pair in _named(part).T.tolist() if part.ids[1] in pair for end in pair}
    for node, time in zip(found.part.ids, found.nodes, strict=True):
        assert time == 5 or (time == 1 and node in touched)


def test_what_has_no_times_or_no_future_is_refused(tmp_path, dated):
    part = cut_randomly(random_graph())[0]
    write_folder(part, tmp_path / "plain")
    with pytest.raises(DataError, match="add a column 'time'"):
        read_dated(tmp_path / "plain", part)
    with pytest.raises(DataError, match="leave none"):
        split_by_time(dated, 0.9, 0.2)
    with_times(tmp_path / "plain", "edges", lambda row: "inf")
    with pytest.raises(DataError, match="no finite number"):
        read_dated(tmp_path / "plain", read_folder(tmp_path / "plain"))
