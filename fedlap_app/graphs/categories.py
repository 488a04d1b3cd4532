"""Columns of categories: which of a few columns a text belongs to, by a keyed hash of it."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.kinds import SLOTS
from fedlap_app.graphs.subgraph import Subgraph

Ints = NDArray[np.int64]

BUCKETS = 16_384
"""Hashed slots of a column: of 100 categories two share one in a quarter of all columns."""


def buckets_of(subgraph: Subgraph, column: int, key: bytes) -> Ints:
    """Hashed slot of every node's category; -1 where it is missing.

    Parameters
    ----------
    subgraph, column
        The table, and which of its columns of categories.
    key
        Secret of the organisations: who does not have it cannot tell which text has which slot.
    """
    assert subgraph.categories is not None, "only columns of categories have buckets"
    texts, place = np.unique(subgraph.categories[:, column], return_inverse=True)
    base = blake2b(column.to_bytes(4, "little"), key=key, digest_size=8)
    found = []
    for value in texts.tolist():
        hashed = base.copy()
        hashed.update(value.encode())
        found.append(int.from_bytes(hashed.digest(), "little") % BUCKETS if value else -1)
    buckets: Ints = np.array(found, dtype=np.int64)[place.ravel()]
    return buckets


def one_hot(subgraph: Subgraph, column: int, key: bytes, dictionary: Ints) -> NDArray[np.float64]:
    """(n, SLOTS) missing, other, and the categories of a dictionary."""
    buckets = buckets_of(subgraph, column, key)
    place = np.full(BUCKETS, 1)
    place[dictionary] = 2 + np.arange(dictionary.size)
    read = np.zeros((buckets.size, SLOTS))
    read[np.arange(buckets.size), np.where(buckets < 0, 0, place[buckets])] = 1.0
    return read
