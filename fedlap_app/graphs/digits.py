"""Scikit-learn's handwritten digits as a graph of mutual nearest neighbours."""

import numpy as np
import scipy.sparse as sp

from fedlap_app.errors import ConfigError
from fedlap_app.graphs.graph import Graph

NUM_DIGITS = 1797


def make_digits(neighbours: int, *, directed: bool = False) -> Graph:
    """Digits joined when each is among the other's nearest; every weight is 1.

    Parameters
    ----------
    neighbours : how many nearest images count, 1 to 1796.
    directed : keep direction, which is there both ways for every edge.
    """
    if not 1 <= neighbours < NUM_DIGITS:
        raise ConfigError(f"neighbours = {neighbours} is out of range: take 1 to {NUM_DIGITS - 1}.")
    from sklearn.datasets import load_digits
    from sklearn.neighbors import kneighbors_graph

    digits = load_digits()
    nearest = sp.csr_array(kneighbors_graph(digits.data, neighbours))
    mutual = nearest.minimum(nearest.T).tocoo()
    return Graph(
        ids=np.char.add("digit-", np.char.zfill(np.arange(NUM_DIGITS).astype(np.str_), 4)),
        features=(digits.data / digits.data.max()).astype(np.float32),
        labels=digits.target.astype(np.int64),
        edge_index=np.stack(mutual.coords).astype(np.int64),
        edge_weight=np.ones(mutual.nnz),
        classes=tuple(str(name) for name in digits.target_names),
        feature_names=tuple(str(name) for name in digits.feature_names),
        directed=directed,
    )
