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
    masks = []
    for nodes in np.split(labelled, np.maximum.accumulate(ends))[:3]:
        mask = np.zeros(labels.size, dtype=bool)
        mask[nodes] = True
        masks.append(mask)
    return Masks(*masks)
