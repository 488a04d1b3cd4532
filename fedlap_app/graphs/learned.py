"""How columns are to be read, learned from tables that are all in one place."""

from collections.abc import Sequence

import numpy as np

from fedlap_app.graphs.distribution import FEW_OF_WORDS, are_words, ordinary
from fedlap_app.graphs.encoding import Encoding
from fedlap_app.graphs.moments import Moments
from fedlap_app.graphs.subgraph import Subgraph


def learn(
    parts: Sequence[Subgraph], *, least: int = 1, classes: bool = False, key: bytes = bytes(32)
) -> Encoding:
    """The encoding of tables that are all in one place.

    Parameters
    ----------
    parts
        The tables.
    least, classes, key
        As of `Moments`.
    """
    count = len(parts)
    each = [Moments(p, key, members=count, least=least, classes=classes) for p in parts]
    while not each[0].done:
        sums = np.sum([one.contribute() for one in each], axis=0)
        for one in each:
            one.absorb(sums)
    return each[0].encoding()


def learn_alone(subgraph: Subgraph) -> Encoding:
    """The encoding that follows from one table alone."""
    return learn([subgraph])


def asks(subgraph: Subgraph) -> bool:
    """Whether a column of a table asks for more than to stay as it is."""
    if any(subgraph.kinds):
        return True
    features = subgraph.features
    nodes, columns = features.shape
    if isinstance(features, np.ndarray):
        places, values = np.nonzero(features)[1], features[features != 0]
    else:
        places, values = features.tocoo().coords[1], features.data
    if bool((values == 1).all()):
        return False
    values = np.where(values == 0, 1.0, np.abs(values.astype(np.float64)))
    counts = np.bincount(places, minlength=columns)
    others = np.bincount(places, weights=values != 1, minlength=columns)
    logs = np.bincount(places, weights=np.log2(values), minlength=columns)
    share, size = counts / nodes, np.exp2(logs / np.maximum(counts, 1))
    if not are_words(share):
        return bool((others > 0).any())
    few = (share <= FEW_OF_WORDS) & ordinary(size)
    return bool((~few & (others > 0)).any())
