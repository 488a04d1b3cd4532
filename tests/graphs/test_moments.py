"""Moments of columns: the same as those of one table, whoever holds its rows, in whatever unit."""

import numpy as np
import pytest
import scipy.sparse as sp

from fedlap_app.graphs.encoding import FARTHEST, Encoding, Rule
from fedlap_app.graphs.graph import Graph, cut, join
from fedlap_app.graphs.kinds import SLOTS
from fedlap_app.graphs.learned import asks, learn_alone
from fedlap_app.graphs.moments import Moments

N = 600


def graph_of(columns, kinds=(), categories=None):
    """A ring with these columns."""
    features = np.stack(columns, axis=1).astype(np.float32)
    nodes = len(features)
    ends = np.arange(nodes)
    return Graph(
        ids=np.array([f"n{i:04d}" for i in range(nodes)]),
        features=features,
        labels=np.arange(nodes) % 3,
        edge_index=np.stack([ends, (ends + 1) % nodes]),
        edge_weight=np.ones(nodes),
        classes=("a", "b", "c"),
        feature_names=tuple(f"f{i}" for i in range(features.shape[1])),
        kinds=kinds,
        categories=categories,
    )


def parts_of(graph, owner):
    nodes = graph.ids.size
    masks = [np.arange(nodes) % 3 == k for k in range(3)]
    masks[0] = np.arange(nodes) < 300
    masks[1:] = [np.zeros(nodes, bool)] * 2
    return cut(graph, np.asarray(owner), [f"o{i}" for i in range(max(owner) + 1)], masks)


def together(parts, key=b"k" * 32, **how):
    """The encodings of all parts after all rounds."""
    how.setdefault("least", min(3, len(parts)))
    halves = [Moments(part, key, members=len(parts), **how) for part in parts]
    while not halves[0].done:
        given = [half.contribute() for half in halves]
        assert all(np.abs(each).max() <= 2.0 for each in given)
        for half in halves:
            half.absorb(np.sum(given, axis=0))
    return [half.encoding() for half in halves]


def read(parts):
    encodings = together(parts)
    pairs = zip(encodings, parts, strict=True)
    rows = {}
    for encoding, part in pairs:
        rows |= zip(part.ids.tolist(), encoding.apply(part).features, strict=True)
    return np.array([rows[each] for each in sorted(rows)]), encodings[0]


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture
def columns(rng):
    return [
        rng.standard_normal(N),
        rng.uniform(size=N),
        rng.lognormal(sigma=2.0, size=N),
        (rng.random(N) < 0.3).astype(float),
        np.full(N, 7.0),
        (rng.random(N) < 0.01) * 3.0,
    ]


def test_ordinary_columns_have_mean_0_and_deviation_1(columns):
    found, encoding = read(parts_of(graph_of(columns), np.arange(N) % 4))
    rules = [Rule(each) for each in encoding.rule]
    assert rules == [Rule.LINEAR, Rule.LINEAR, Rule.ASINH, Rule.TWO_VALUES, Rule.ZERO, Rule.SIZED]
    for at in (0, 1):
        x = columns[at]
        assert np.allclose(found[:, at], (x - x.mean()) / x.std(), atol=1e-5)
    assert abs(found[:, 2].mean()) < 1e-5
    assert 0.7 < found[:, 2].std() <= 1.001
    assert np.array_equal(found[:, 3], columns[3])
    assert not found[:, 4].any()
    assert np.allclose(found[:, 5], columns[5] / 3.0)


def test_heavy_tails_are_drawn_in_and_keep_their_order(columns):
    found, _ = read(parts_of(graph_of(columns), np.arange(N) % 4))
    x = columns[2]
    plain = np.abs(x - x.mean()).max() / x.std()
    assert np.abs(found[:, 2]).max() < 0.6 * plain
    order = np.argsort(x)
    assert (np.diff(found[order, 2]) >= -1e-6).all()


def test_parts_learn_what_the_whole_table_says(columns):
    parts = parts_of(graph_of(columns), np.arange(N) % 5)
    alone = learn_alone(join(parts))
    for encoding in together(parts):
        for name in ("rule", "bound", "centre", "unit", "mean", "deviation"):
            assert np.allclose(getattr(encoding, name), getattr(alone, name), rtol=1e-9)


@pytest.mark.parametrize(("scale", "offset"), [(20_000, 30_000), (1e-6, 0), (3e8, 0), (2, -50)])
def test_no_unit_and_no_offset_changes_what_is_read(columns, scale, offset):
    some = columns[:4]
    owner = np.arange(N) % 3
    plain, _ = read(parts_of(graph_of(some), owner))
    moved, _ = read(parts_of(graph_of([scale * x + offset for x in some]), owner))
    assert np.abs(plain - moved).max() < 1e-3


@pytest.mark.parametrize("scale", [4.0, 0.03, 20_000.0])
def test_no_unit_changes_a_column_that_is_mostly_empty(rng, scale):
    rare = np.where(np.arange(N) % 70 == 0, 1.0 + np.arange(N) % 8, 0.0)
    rows = {}
    for factor in (1.0, scale):
        parts = parts_of(graph_of([factor * rare, rng.standard_normal(N)]), np.arange(N) % 3)
        assert all(asks(part) for part in parts)
        found, encoding = read(parts)
        assert encoding.rule[0] == Rule.SIZED
        rows[factor] = found[:, 0]
    assert np.array_equal(rows[1.0] == 0, rare == 0)
    assert np.allclose(rows[1.0], rows[scale], rtol=1e-5)


def test_an_outlier_does_not_squeeze_the_others(rng):
    x = rng.standard_normal(N)
    x[17] = 1e30
    found, _ = read(parts_of(graph_of([x]), np.arange(N) % 3))
    rest = np.delete(found[:, 0], 17)
    assert rest.std() > 0.3
    assert np.abs(found).max() <= FARTHEST


def test_a_bag_of_words_asks_for_nothing(rng):
    words = sp.random_array((N, 80), density=0.1, rng=rng, format="csr", dtype=np.float32)
    graph = graph_of([np.zeros(N)])
    bag = Graph(
        **{
            **{key: getattr(graph, key) for key in ("ids", "labels", "edge_weight", "classes")},
            "edge_index": graph.edge_index,
            "features": words,
            "feature_names": tuple(f"w{i}" for i in range(80)),
        }
    )
    parts = parts_of(bag, np.arange(N) % 3)
    assert not any(asks(part) for part in parts)
    encoding = together(parts)[0]
    assert not encoding.changes
    assert all(encoding.apply(part) is part for part in parts)


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.0,), (1.0,)])
def test_zeros_and_ones_ask_for_nothing(rng, values):
    x = rng.choice(values, size=N)
    assert not asks(parts_of(graph_of([x]), [0] * N)[0])


def test_few_changed_columns_leave_a_sparse_matrix_sparse(rng):
    dense = np.where(rng.random((N, 60)) < 0.05, 0.5, 0.0)
    dense[:, 7] = 1e4 + 100 * rng.standard_normal(N)
    graph = graph_of(list(dense.T))
    sparse = Graph(**{**vars(graph), "features": sp.csr_array(graph.features)})
    parts, same = (parts_of(each, np.arange(N) % 3) for each in (sparse, graph))
    found, expected = together(parts)[0].apply(parts[0]), together(same)[0].apply(same[0])
    assert sp.issparse(found.features)
    assert np.allclose(found.features.toarray(), expected.features)
    assert np.array_equal(np.delete(expected.features, 7, 1), np.delete(same[0].features, 7, 1))


def test_a_missing_value_is_the_mean_and_is_marked(rng):
    x = 100 + rng.standard_normal(N)
    x[::7] = np.nan
    graph = graph_of([x, rng.standard_normal(N)], kinds=("number", ""))
    found, _ = read(parts_of(graph, np.arange(N) % 3))
    assert found.shape == (N, 3)
    held = x[~np.isnan(x)]
    assert np.allclose(found[~np.isnan(x), 0], (held - held.mean()) / held.std(), atol=1e-3)
    assert not found[::7, 0].any()
    assert np.array_equal(found[:, 1], np.isnan(x))


def test_a_column_that_too_few_hold_has_no_sums(rng):
    x = rng.standard_normal(N)
    owner = np.arange(N) % 4
    x[owner > 1] = np.nan
    parts = parts_of(graph_of([x], kinds=("number",)), owner)
    halves = [Moments(part, b"k" * 32, members=4, least=3) for part in parts]
    sums = []
    while not halves[0].done:
        sums.append(np.sum([half.contribute() for half in halves], axis=0))
        for half in halves:
            half.absorb(sums[-1])
    assert sums[0].tolist() == [2.0]  # who holds it is all that they say
    assert not any(each.any() for each in sums[1:])
    encoding = halves[0].encoding().filled_by(learn_alone(parts[0]))
    found = encoding.apply(parts[0]).features[:, 0]
    assert abs(found.mean()) < 1e-5


def test_categories_of_one_organisation_and_unseen_ones_are_other(rng):
    owner = np.arange(N) % 3
    texts = np.array(["red", "green", "blue"], dtype="<U8")[rng.integers(3, size=N)]
    texts[(owner == 0) & (rng.random(N) < 0.2)] = "secret"
    texts[:3] = ""
    graph = graph_of([np.zeros(N)], kinds=("category",), categories=texts[:, None])
    parts = parts_of(graph, owner)
    found, encoding = read(parts)
    assert found.shape == (N, SLOTS)
    assert (found.sum(axis=1) == 1).all()
    assert found[:3, 0].all()
    assert np.array_equal(found[:, 1] == 1, texts == "secret")
    for text in ("red", "green", "blue"):
        assert len({int(row.argmax()) for row in found[texts == text]}) == 1
    counts = [(texts == text).sum() for text in ("red", "green", "blue")]
    assert sorted(found[:, 2:5].sum(axis=0)) == sorted(counts)
    new = Graph(**{**vars(graph), "categories": np.full((N, 1), "violet")})
    assert encoding.apply(parts_of(new, owner)[0]).features[:, 1].all()


def test_without_the_key_nobody_tells_which_slot_is_which_text(rng):
    texts = np.array(["red", "green"])[rng.integers(2, size=N)]
    graph = graph_of([np.zeros(N)], kinds=("category",), categories=texts[:, None])
    part = parts_of(graph, [0] * N)[0]
    first, second = (Moments(part, key, members=3, least=3).contribute() for key in (b"a", b"b"))
    assert not np.array_equal(np.flatnonzero(first), np.flatnonzero(second))


def test_training_nodes_are_counted_by_class():
    parts = parts_of(graph_of([np.arange(N)]), np.arange(N) % 4)
    assert together(parts, classes=True)[0].class_counts.tolist() == [100, 100, 100]
    assert together(parts)[0].class_counts.size == 0


def test_an_encoding_is_read_back(columns, rng):
    texts = np.array(["x", "y"])[rng.integers(2, size=N)][:, None]
    kinds = ("number", "", "category")
    graph = graph_of([columns[0], columns[2], np.zeros(N)], kinds=kinds, categories=texts)
    parts = parts_of(graph, np.arange(N) % 3)
    encoding = together(parts, classes=True)[0]
    again = Encoding.from_bytes(encoding.to_bytes())
    assert np.array_equal(again.apply(parts[0]).features, encoding.apply(parts[0]).features)
    assert again.key == encoding.key
