import dataclasses

import numpy as np
import pytest

from fedlap_app.graphs.agreement import check_federation
from tests.graphs.conftest import cut_randomly, random_graph


@pytest.fixture
def parts():
    return cut_randomly(random_graph(30, 200), 3)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_was_cut_fits(directed, count):
    assert check_federation(cut_randomly(random_graph(directed=directed), count)) == []


def only(problems):
    (problem,) = problems
    assert problem.endswith(".")
    assert "\n" not in problem
    return problem


def test_classes_must_agree(parts):
    parts[1] = dataclasses.replace(parts[1], classes=("blue", "green", "red"))
    assert "'org-1' has blue, green, red" in only(check_federation(parts))


def test_features_must_agree(parts):
    parts[2] = dataclasses.replace(parts[2], feature_names=("a", "b", "c"))
    assert "'org-2' has 3 a, b, c" in only(check_federation(parts))


def test_names_must_differ(parts):
    problems = check_federation([parts[0], parts[0]])
    assert "2 organisations call themselves 'org-0'" in problems[0]


def test_a_node_has_one_holder():
    parts = cut_randomly(random_graph(30, 30), 3)
    ids = parts[0].ids.copy()
    mine = next(node for node in parts[1].ids if node not in parts[0].external_ids)
    ids[0] = mine
    parts[0] = dataclasses.replace(parts[0], ids=ids)
    problem = only(check_federation(parts))
    assert "'org-0' and 'org-1' both hold 1 node" in problem
    assert repr(str(mine)) in problem


def test_an_owner_must_be_there(parts):
    problems = check_federation(parts[:2])
    assert len(problems) == 2
    assert "'org-0' names 'org-2' as the owner" in problems[0]


def test_the_named_owner_must_hold_the_node(parts):
    owners = parts[0].external_owners.copy()
    owners[0] = "org-2" if owners[0] == "org-1" else "org-1"
    parts[0] = dataclasses.replace(parts[0], external_owners=owners)
    problems = check_federation(parts)
    assert f"says that '{owners[0]}' holds 1 node which it does not" in problems[0]
    assert repr(str(parts[0].external_ids[0])) in problems[0]


def drop_edges(part, drop):
    keep = ~drop
    used = np.unique(part.edge_index[:, keep])
    kept = np.flatnonzero(np.isin(np.arange(part.num_external) + part.num_nodes, used))
    renumber = (
        np.cumsum(
            np.isin(np.arange(part.num_nodes + part.num_external), used)
            | (np.arange(part.num_nodes + part.num_external) < part.num_nodes)
        )
        - 1
    )
    return dataclasses.replace(
        part,
        edge_index=renumber[part.edge_index[:, keep]],
        edge_weight=part.edge_weight[keep],
        external_ids=part.external_ids[kept],
        external_owners=part.external_owners[kept],
    )


@pytest.mark.parametrize("directed", [False, True])
def test_both_sides_list_an_edge(directed):
    parts = cut_randomly(random_graph(30, 200, directed=directed), 3)
    part = parts[0]
    outer = part.edge_index.max(axis=0) - part.num_nodes
    to_one = (outer >= 0) & (part.external_owners[np.maximum(outer, 0)] == "org-1")
    parts[0] = drop_edges(part, to_one)
    problem = only(check_federation(parts))
    count = int(to_one.sum()) // (1 if directed else 2)
    assert f"'org-1' lists {count} edges with 'org-0' that 'org-0' does not list" in problem


def test_weights_must_agree(parts):
    part = parts[0]
    inter = (part.edge_index >= part.num_nodes).any(axis=0)
    weight = np.where(inter, part.edge_weight * 2, part.edge_weight)
    parts[0] = dataclasses.replace(part, edge_weight=weight)
    problems = check_federation(parts)
    assert len(problems) == 2
    assert "'org-0' and 'org-1' give different weights" in problems[0]
