"""One graph in memory, as three libraries hold it, divided among organisations."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import fedlap_app as fedlap
from fedlap_app.errors import ConfigError, DataError
from fedlap_app.graphs.graph import join

N = 60


@pytest.fixture
def network():
    """A graph of three groups with a feature that tells them apart."""
    graph = nx.random_partition_graph([20, 20, 20], 0.3, 0.02, seed=3)
    rng = np.random.default_rng(0)
    for node in graph:
        graph.nodes[node].clear()
        group = graph.graph["partition"]
        label = next(at for at, members in enumerate(group) if node in members)
        graph.nodes[node].update(
            label=f"group-{label}",
            split=("train", "val", "test")[node % 3],
            x=[float(label == 1) + 0.1 * rng.normal(), float(label == 2)],
        )
    for a, b in graph.edges:
        graph[a][b]["weight"] = 1.0 + (a + b) % 2
    return graph


def whole(orgs):
    """Features, labels, splits, ids and edges of all, in one order."""
    part = join(list(orgs))
    order = np.argsort(part.ids.astype(int))
    adjacency = part.out_adjacency().toarray()[np.ix_(order, order)]
    masks = [mask[order] for mask in (part.train_mask, part.val_mask, part.test_mask)]
    return part.features[order], part.labels[order], masks, adjacency


def frames(network):
    facts = dict(network.nodes(data=True))
    nodes = pd.DataFrame(
        {
            "id": list(facts),
            "label": [each["label"] for each in facts.values()],
            "split": [each["split"] for each in facts.values()],
            "age": [each["x"][0] for each in facts.values()],
            "size": [each["x"][1] for each in facts.values()],
        }
    )
    return nodes, nx.to_pandas_edgelist(network)


def pyg(network):
    facts = [network.nodes[node] for node in range(N)]
    edges = list(network.edges(data="weight"))
    index = torch.tensor([[a, b] for a, b, _ in edges] + [[b, a] for a, b, _ in edges]).T
    splits = {
        f"{name}_mask": torch.tensor([each["split"] == name for each in facts])
        for name in ("train", "val", "test")
    }
    return Data(
        x=torch.tensor([each["x"] for each in facts], dtype=torch.float32),
        y=torch.tensor([int(each["label"][-1]) for each in facts]),
        edge_index=index,
        edge_weight=torch.tensor([w for _, _, w in edges] * 2),
        **splits,
    )


def test_all_three_give_the_same_graph(network):
    found = [
        whole(fedlap.split(network, clients=4)),
        whole(fedlap.split(*frames(network), clients=3, partition="louvain")),
        whole(fedlap.split(pyg(network), clients=2, seed=5)),
    ]
    expected = nx.to_numpy_array(network, nodelist=range(N))
    vectors = np.array([network.nodes[node]["x"] for node in range(N)], dtype=np.float32)
    labels = [int(network.nodes[node]["label"][-1]) for node in range(N)]
    for features, classes, masks, adjacency in found:
        np.testing.assert_array_equal(features, vectors)
        np.testing.assert_array_equal(classes, labels)
        np.testing.assert_array_equal(adjacency, expected)
        for at, mask in enumerate(masks):
            np.testing.assert_array_equal(mask, np.arange(N) % 3 == at)


def test_names_of_classes_features_and_nodes_are_kept(network):
    orgs = fedlap.split(*frames(network), clients=2)
    assert orgs[0].classes == ("group-0", "group-1", "group-2")
    assert orgs[0].feature_names == ("age", "size")
    assert sorted(int(each) for part in orgs for each in part.ids) == list(range(N))
    few = fedlap.split(*frames(network), clients=2, features=["size"], classes=["group-2",
        "group-1", "group-0"])  # fmt: skip
    assert few[0].feature_names == ("size",)
    assert few[0].classes[0] == "group-2"


@pytest.mark.parametrize("form", ["list", "mapping", "column"])
def test_owners_hold_what_is_theirs(network, form):
    who = {node: "east" if node % 2 else "west" for node in network}
    nodes, edges = frames(network)
    nodes["bank"] = [who[node] for node in nodes["id"]]
    owners = {"list": list(nodes["bank"]), "mapping": who, "column": "bank"}[form]
    data = nodes if form == "column" else nodes.drop(columns="bank")
    orgs = fedlap.split(data, edges, owners=owners)
    assert orgs.names == ("east", "west")
    assert set(orgs["east"].ids) == {str(node) for node in range(1, N, 2)}
    assert orgs[0].feature_names == ("age", "size")


def test_a_split_is_drawn_where_none_is_marked(network):
    data = pyg(network)
    del data.train_mask, data.val_mask, data.test_mask
    orgs = fedlap.split(data, clients=2, train_ratio=0.5, val_ratio=0.25, test_ratio=0.25)
    assert sum(int(part.train_mask.sum()) for part in orgs) == N // 2


def test_a_node_without_a_label_is_kept(network):
    nodes, edges = frames(network)
    nodes.loc[3, ["label", "split"]] = [None, None]
    orgs = fedlap.split(nodes, edges, clients=2)
    labels = dict(zip(*(np.concatenate([getattr(part, key) for part in orgs])
                        for key in ("ids", "labels")), strict=True))  # fmt: skip
    assert labels["3"] == -1


def test_it_learns_the_groups(network, quick_for):
    clear = {"dropout": 0.0, "input_dropout": 0.0, "input_norm": False, "learning_rate": 0.05}
    orgs = fedlap.split(network, clients=3)
    run = fedlap.train(orgs, "fedavg", **{**quick_for("fedavg"), **clear, "rounds": 20})
    assert run.accuracy["test"] > 0.9


def test_its_run_is_saved_with_the_data(network, quick, tmp_path):
    orgs = fedlap.split(network, clients=3)
    run = fedlap.train(orgs, **quick)
    run.save(tmp_path / "kept")
    again = fedlap.open_run(tmp_path / "kept")
    assert again == run
    assert again.predict(orgs.names[0]).equals(run.predict(orgs.names[0]))
    assert set(again.predict(orgs.names[1])["id"]) == set(orgs[1].ids)


def test_what_is_no_graph_is_told(network):
    nodes, edges = frames(network)
    for data, rest, sentence in (
        ([1, 2], {}, "list is no graph"),
        (nodes, {}, "needs a frame of edges"),
        (nodes.drop(columns="label"), {"edges": edges}, "no column 'label'"),
        (nodes.assign(city="Bonn"), {"edges": edges}, "'city' does not hold numbers"),
        (nodes.assign(split="later"), {"edges": edges}, "unknown split 'later'"),
        (nodes[nodes["id"] > 0], {"edges": edges}, "names the node 0"),
        (nodes, {"edges": edges, "owners": ["a"]}, "1 entries for 60 nodes"),
        (nodes, {"edges": edges, "owners": "bank"}, "no column 'bank'"),
        (nodes, {"edges": edges, "clients": 100}, "cannot be divided among 100"),
        (nodes.assign(label=""), {"edges": edges}, "no node has a label"),
    ):
        with pytest.raises((DataError, ConfigError), match=sentence):
            fedlap.split(data, **rest)
