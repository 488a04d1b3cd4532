"""Training, validation and test nodes, drawn from the labelled nodes of the whole graph."""

from typing import NamedTuple

import numpy as np

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.arrays import Bools, Ints


class Masks(NamedTuple):
    """Which nodes train, validate and test; no node is in two of them."""

    train: Bools
    val: Bools
    test: Bools


def check_ratios(train: float, val: float, test: float) -> None:
    """Refuse shares that are negative, train on nothing or add up to more than one."""
    shares = (train, val, test)
    numbers = all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares)
    if not numbers or sum(shares) > 1 + 1e-9 or train == 0:
        raise ConfigError(
            f"The split {train}/{val}/{test} (train/val/test) is not usable: take shares "
            "from 0 to 1 that add up to at most 1, with something to train on."
        )


def draw_masks(labels: Ints, ratios: tuple[float, float, float], rng: np.random.Generator) -> Masks:
    """Uniformly random splits of the nodes that have a label.

    Parameters
    ----------
    labels : (n,) classes, -1 without one; such a node is in no split.
    ratios : shares of the labelled nodes that train, validate and test.
    rng : source of the draw.
    """
    check_ratios(*ratios)
    labelled = rng.permutation(np.flatnonzero(labels >= 0))
    ends = np.rint(np.cumsum(ratios) * labelled.size).astype(int)
    ends[0] = max(ends[0], min(1, labelled.size))
    return _cut(labels.size, labelled, np.maximum.accumulate(ends))


def published_masks(labels: Ints, ratios: tuple[float, float, float], seed: int) -> Masks:
    """The split that torch's `random_split` draws from all nodes with a seed, as published code.

    Parameters
    ----------
    labels : (n,) classes, -1 without one; such a node takes a place and is in no split.
    ratios : shares of all nodes that train, validate and test.
    seed : of torch's generator.
    """
    check_ratios(*ratios)
    sizes = np.floor(np.array(ratios) * labels.size).astype(int)
    if np.isclose(sum(ratios), 1.0):
        sizes[: labels.size - sizes.sum()] += 1  # what is left goes round, one node each
    masks = _cut(labels.size, _order_of_torch(labels.size, seed), np.cumsum(sizes))
    return Masks(*(mask & (labels >= 0) for mask in masks))


def _cut(count: int, nodes: Ints, ends: Ints) -> Masks:
    """Masks of the nodes up to each end."""
    masks = []
    for some in np.split(nodes, ends)[:3]:
        mask = np.zeros(count, dtype=bool)
        mask[some] = True
        masks.append(mask)
    return Masks(*masks)


def _order_of_torch(count: int, seed: int) -> Ints:
    """`torch.randperm(count)` after `manual_seed(seed)`, without torch."""
    # The same Mersenne twister, seeded in its first way, which numpy keeps in RandomState only.
    twister = np.random.RandomState(seed % 2**32)
    drawn = twister.randint(2**32, size=count, dtype=np.uint32).tolist()
    order = list(range(count))
    for place, number in enumerate(drawn[:-1]):
        other = place + number % (count - place)
        order[place], order[other] = order[other], order[place]
    return np.array(order, dtype=np.int64)
