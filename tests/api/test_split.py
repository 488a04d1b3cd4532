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


def test_what_a_tensor_may_be_is_read_alike(network):
    data = pyg(network)
    expected = whole(fedlap.split(data, clients=3))
    data.x = data.x.clone().requires_grad_()
    data.train_mask = data.train_mask.numpy()
    data.y = [f"group-{label}" for label in data.y.tolist()]
    for found, known in zip(whole(fedlap.split(data, clients=3)), expected, strict=True):
        np.testing.assert_array_equal(found, known)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("edge_index", lambda index: None, "no edge_index"),
        ("edge_index", lambda index: index.T, r"\(2, edges\)"),
        ("edge_weight", lambda weight: weight[:5], r"the weights \(5,\)"),
        ("x", lambda x: x[:-1], r"data.x has the shape \(59, 2\)"),
        ("y", lambda y: torch.stack([y, y], 1), "one class for each of 60"),
        ("train_mask", lambda mask: torch.stack([mask, mask], 1), "choose one split"),
    ],
)
def test_a_tensor_of_another_shape_is_refused(network, name, change, sentence):
    data = pyg(network)
    data.num_nodes = N
    data[name] = change(data[name])
    with pytest.raises(DataError, match=sentence):
        fedlap.split(data)


def test_numbers_may_be_numpys_and_missing_ones_are_clustered(network):
    nodes, edges = frames(network)
    labels = pd.array([None, *[int(label[-1]) for label in nodes["label"][1:]]], dtype="Int64")
    nodes = nodes.assign(label=labels, split="", age=[np.nan, *nodes["age"][1:]])
    orgs = fedlap.split(nodes, edges, clients=np.int64(3), seed=np.int64(2), partition="kmeans")
    assert type(orgs.seed) is int
    assert sum(int((part.labels < 0).sum()) for part in orgs) == 1


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
        (nodes.assign(id=7), {"edges": edges}, "node 7 is listed twice"),
        (nodes.assign(id=[None, *nodes["id"][1:]]), {"edges": edges}, "node number 1 has no id"),
        (nodes, {"edges": edges.astype(str)}, "names the node '0', .* call it 0"),
        (nodes, {"edges": edges.assign(weight="much")}, "weight does not hold numbers"),
        (nodes, {"edges": [(0, 1)]}, "needs a frame of edges"),
        (nodes.assign(age=pd.Timestamp(0)), {"edges": edges}, "'age' does not hold numbers"),
        (nodes[["id", "label", "age", "age"]], {"edges": edges}, "two columns 'age'"),
        (nodes, {"edges": edges, "owners": ["a", None] * 30}, "nobody for node 1"),
        (nodes, {"edges": edges, "owners": 3}, "owners = 3 is none"),
        (nodes, {"edges": edges, "features": "age"}, "one text: give a list"),
        (nodes, {"edges": edges, "clients": "3"}, "clients = '3' is not a whole number"),
        (nodes, {"edges": edges, "seed": 1.5}, "seed = 1.5 is not a whole number"),
        (nodes.drop(columns="split"), {"edges": edges, "val_ratio": "x"}, "split 0.1/x/0.8"),
        (network, {"edges": edges}, "holds edges as well"),
    ):
        with pytest.raises((DataError, ConfigError), match=sentence):
            fedlap.split(data, **rest)
