import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.splits import draw_masks, published_masks


def draw(labels, ratios=(0.1, 0.1, 0.8), seed=0):
    return draw_masks(np.asarray(labels), ratios, np.random.default_rng(seed))


def test_shares_are_those_asked_for():
    masks = draw(np.zeros(1000, dtype=int))
    assert [int(mask.sum()) for mask in masks] == [100, 100, 800]


def test_shares_below_one_leave_nodes_out():
    masks = draw(np.zeros(1000, dtype=int), (0.2, 0.1, 0.3))
    assert [int(mask.sum()) for mask in masks] == [200, 100, 300]


@given(st.lists(st.integers(-1, 3), min_size=1, max_size=60), st.integers(0, 1000))
def test_every_labelled_node_is_in_one_split_and_no_other_node(labels, seed):
    masks = np.array(draw(labels, seed=seed))
    np.testing.assert_array_equal(masks.sum(axis=0), np.asarray(labels) >= 0)
    assert masks[0].any() == (max(labels) >= 0)


def test_the_seed_decides():
    labels = np.zeros(500, dtype=int)
    assert np.array_equal(draw(labels, seed=4), draw(labels, seed=4))
    assert not np.array_equal(draw(labels, seed=4), draw(labels, seed=5))


@pytest.mark.parametrize(
    "ratios", [(0, 0.5, 0.5), (0.5, 0.5, 0.5), (-0.1, 0.5, 0.5), (1.5, 0, 0), (float("nan"), 0, 1)]
)
def test_bad_shares_are_refused(ratios):
    with pytest.raises(ConfigError, match="not usable"):
        draw([0, 1], ratios)


@pytest.mark.parametrize(("count", "seed"), [(20, 0), (2277, 54), (999, 2**40 + 3)])
def test_a_published_split_is_that_of_torch(count, seed):
    import torch
    from torch.utils.data import random_split

    generator = torch.Generator().manual_seed(seed)
    drawn = random_split(range(count), [0.1, 0.1, 0.8], generator)
    masks = published_masks(np.zeros(count, dtype=int), (0.1, 0.1, 0.8), seed)
    for mask, subset in zip(masks, drawn, strict=True):
        assert np.flatnonzero(mask).tolist() == sorted(subset.indices)


def test_a_node_without_a_label_takes_a_place_of_a_published_split():
    labels = np.zeros(100, dtype=int)
    whole = published_masks(labels, (0.1, 0.1, 0.8), 54)
    labels[::3] = -1
    for mask, full in zip(published_masks(labels, (0.1, 0.1, 0.8), 54), whole, strict=True):
        assert np.array_equal(mask, full & (labels >= 0))
