import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.errors import DataError
from fedlap_app.graphs.subgraph import Subgraph
from tests.graphs.conftest import cut_randomly, random_graph


def test_sizes_and_edges_of_the_triangle(triangle):
    assert (triangle.num_nodes, triangle.num_external) == (2, 1)
    assert (triangle.num_features, triangle.num_classes) == (2, 2)
    assert triangle.partners == ("bank-b",)
    assert triangle.intra_edges[0].tolist() == [[0, 1], [1, 0]]
    assert triangle.inter_edges[0].tolist() == [[1, 2], [2, 1]]
    assert triangle.inter_edges[1].tolist() == [0.5, 0.5]
    assert triangle.out_adjacency().toarray().tolist() == [[0, 2, 0], [2, 0, 0.5]]
    assert triangle.degrees().tolist() == [2.0, 2.5]


def test_directed_adjacencies_are_rows_and_columns_of_the_whole():
    graph = random_graph(directed=True)
    whole = graph.adjacency().toarray()
    position = {node: at for at, node in enumerate(graph.ids)}
    symmetric = np.maximum(whole, whole.T)
    for part in cut_randomly(graph):
        own = [position[node] for node in part.ids]
        everyone = own + [position[node] for node in part.external_ids]
        np.testing.assert_array_equal(part.out_adjacency().toarray(), whole[np.ix_(own, everyone)])
        np.testing.assert_array_equal(part.in_adjacency().toarray(), whole.T[np.ix_(own, everyone)])
        np.testing.assert_allclose(part.degrees(), symmetric[own].sum(axis=1), rtol=1e-14)


def test_everything_is_read_only(triangle):
    for value in vars(triangle).values():
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        triangle.features[0, 0] = 7


def test_the_callers_arrays_stay_writeable(change):
    labels = np.array([1, 0])
    assert change(labels=labels).labels.tolist() == [1, 0]
    labels[0] = 0


def test_edges_are_sorted_by_source_and_target(change, triangle):
    order = [3, 1, 0, 2]
    shuffled = change(
        edge_index=triangle.edge_index[:, order], edge_weight=triangle.edge_weight[order]
    )
    assert shuffled.fingerprint() == triangle.fingerprint()


def test_one_node_without_edges_or_features_is_a_graph(change):
    lonely = change(
        ids=np.array(["a"]),
        external_ids=[],
        external_owners=[],
        edge_index=np.empty((2, 0), dtype=np.int64),
        edge_weight=[],
        features=np.empty((1, 0)),
        feature_names=(),
        labels=[0],
        train_mask=[True],
        val_mask=[False],
        test_mask=[False],
    )
    assert lonely.degrees().tolist() == [0.0]
    assert lonely.partners == ()
    assert lonely.out_adjacency().shape == (1, 1)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_saving_and_loading_keeps_everything(change, tmp_path, mmap, sparse):
    matrix = np.array([[0, 2], [3, 0]], dtype=np.float32)
    part = change(features=sp.coo_array(matrix) if sparse else matrix)
    part.save(tmp_path / "part.graph")
    again = Subgraph.load(tmp_path / "part.graph", mmap=mmap)
    assert again.fingerprint() == part.fingerprint()
    assert sp.issparse(again.features) == sparse
    assert not again.labels.flags.writeable
    assert again.classes == part.classes
    assert again.partners == ("bank-b",)


def test_the_fingerprint_sees_every_field(change, triangle):
    prints = {triangle.fingerprint()}
    for fields in (
        {"name": "bank-z"},
        {"classes": ("bad", "good")},
        {"feature_names": ("x", "z")},
        {"ids": np.array(["a", "bb"])},
        {"external_owners": np.array(["bank-c"])},
        {"edge_weight": np.array([2.0, 2.0, 1.5, 1.5])},
        {"features": np.zeros((2, 2))},
        {"labels": np.array([1, -1])},
        {"train_mask": np.array([False, False])},
        {"directed": True},
    ):
        prints.add(change(**fields).fingerprint())
    assert len(prints) == 11


def test_the_fingerprint_ignores_how_wide_strings_and_indices_are(change):
    sparse = sp.csr_array(np.eye(2, dtype=np.float32))
    wide = sparse.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    first = change(features=sparse, ids=np.array(["a", "b"], dtype="<U1"))
    second = change(features=wide, ids=np.array(["a", "b"], dtype="<U9"))
    assert first.fingerprint() == second.fingerprint()


NAN = float("nan")
BAD = [
    ({"name": ""}, "organisation name ''"),
    ({"name": "a/b"}, "folder name"),
    ({"name": ".."}, "folder name"),
    ({"name": "x" * 101}, "at most 100"),
    ({"classes": ()}, "has no classes"),
    ({"classes": ("good", "good")}, "'good' twice"),
    ({"classes": ("good", "")}, "non-empty"),
    ({"classes": ("good", "b\nad")}, "control character"),
    ({"feature_names": ("x", "x")}, "'x' twice"),
    ({"feature_names": ("x",)}, "shape"),
    ({"ids": np.array(["a", "a"])}, "'a' is listed twice"),
    ({"ids": np.array(["a", "c"])}, "'c' is listed twice"),
    ({"ids": np.array(["a", ""])}, "empty entry"),
    ({"ids": np.array(["a", "b\tb"])}, "control character"),
    ({"ids": np.array(["a", "b\0b"])}, "control character"),
    ({"ids": np.array(["a", "b" * 257])}, "256 characters"),
    ({"ids": np.array([1, 2])}, "not text"),
    ({"ids": np.array([["a", "b"]])}, "dimensions"),
    ({"external_owners": np.array(["bank-a"])}, "belongs to another organisation"),
    ({"external_owners": np.array(["b", "c"])}, "one owner for each"),
    ({"edge_weight": np.array([2.0, 2.0, 0.5])}, "give (2, E)"),
    ({"edge_weight": np.array([2.0, 2.0, 0.0, 0.0])}, "positive"),
    ({"edge_weight": np.array([2.0, 2.0, NAN, NAN])}, "positive"),
    ({"edge_weight": np.array([2.0, 2.0, -1, -1])}, "positive"),
    ({"edge_weight": np.array([2.0, 3.0, 0.5, 0.5])}, "another weight in the opposite"),
    ({"edge_weight": np.array(["a", "b", "c", "d"])}, "not numbers"),
    ({"edge_index": np.array([[0, 1, 1, 3], [1, 0, 3, 1]])}, "only 3 nodes"),
    ({"edge_index": np.array([[0, -1, 1, 2], [-1, 0, 2, 1]])}, "only 3 nodes"),
    ({"edge_index": np.array([[0, 1, 1, 1], [1, 0, 2, 1]])}, "self loop"),
    ({"edge_index": np.array([[1, 1, 2, 2], [2, 2, 1, 1]])}, "listed twice"),
    ({"edge_index": np.array([[0, 1, 1, 0], [1, 0, 2, 2]])}, "opposite direction"),
    ({"edge_index": np.array([[0, 1], [1, 0]]), "edge_weight": np.ones(2)}, "'c' has no edge"),
    ({"edge_index": np.array([[0.5, 1], [1, 0]]), "edge_weight": np.ones(2)}, "do not fit"),
    ({"features": np.array([[1.0, NAN], [0, 0]])}, "'y' of node 'a'"),
    ({"features": np.array([[1.0, 1e300], [0, 0]])}, "'y' of node 'a'"),
    ({"features": sp.csr_array(np.array([[0, 0], [np.inf, 0]]))}, "'x' of node 'b'"),
    ({"features": np.zeros(2)}, "one row a node"),
    ({"features": np.zeros((3, 2))}, "shape"),
    ({"labels": np.array([0, 2])}, "label 2 of node 'b'"),
    ({"labels": np.array([0, -2])}, "label -2 of node 'b'"),
    ({"labels": np.array([0])}, "1 labels for 2 nodes"),
    ({"train_mask": np.array([False, True])}, "'b' is in a split but has no label"),
    ({"val_mask": np.array([True, False])}, "'a' is in two splits"),
    ({"test_mask": np.array([True])}, "1 entries for 2 nodes"),
    ({"ids": np.array([], dtype=str)}, "has no nodes"),
]


@pytest.mark.parametrize(("fields", "message"), BAD)
def test_each_violation_is_one_sentence(change, fields, message):
    with pytest.raises(DataError) as caught:
        change(**fields)
    assert message in str(caught.value)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_an_edge_between_two_external_nodes_is_refused(change):
    with pytest.raises(DataError, match="joins two external nodes"):
        change(
            external_ids=np.array(["c", "d"]),
            external_owners=np.array(["bank-b", "bank-b"]),
            edge_index=np.array([[0, 1, 2, 3], [1, 0, 3, 2]]),
        )


def test_a_file_of_something_else_is_refused(tmp_path):
    random_graph().save(tmp_path / "whole.graph")
    with pytest.raises(DataError, match="does not hold a Subgraph"):
        Subgraph.load(tmp_path / "whole.graph")
