"""The three ways a node averages its neighbours, as matrices with targets as rows."""

import numpy as np
import scipy.sparse
from numpy.typing import NDArray


def _adjacency(
    edge_index: NDArray[np.int64], edge_weight: NDArray[np.float64], num_nodes: int
) -> scipy.sparse.csr_array:
    """Messages flow from source to target: entry (target, source) is the weight."""
    source, target = edge_index
    shape = (num_nodes, num_nodes)
    return scipy.sparse.csr_array((edge_weight, (target, source)), shape=shape, dtype=np.float64)


def _power(degrees: NDArray[np.float64], exponent: float) -> NDArray[np.float64]:
    """Raise to a negative power; a node without neighbours gets 0."""
    return np.power(degrees, exponent, where=degrees > 0, out=np.zeros_like(degrees))


def neighbour_mean(
    edge_index: NDArray[np.int64], edge_weight: NDArray[np.float64], num_nodes: int
) -> scipy.sparse.csr_array:
    """D^-1 A: the weighted mean of the in-neighbours, zero without any (GraphSAGE)."""
    adjacency = _adjacency(edge_index, edge_weight, num_nodes)
    return scipy.sparse.diags_array(_power(adjacency.sum(axis=1), -1.0)) @ adjacency


def random_walk(
    edge_index: NDArray[np.int64], edge_weight: NDArray[np.float64], num_nodes: int
) -> scipy.sparse.csr_array:
    """D^-1 (A + I): the weighted mean of the in-neighbours and the node itself."""
    looped = _adjacency(edge_index, edge_weight, num_nodes) + scipy.sparse.eye_array(num_nodes)
    return scipy.sparse.diags_array(_power(looped.sum(axis=1), -1.0)) @ looped


def symmetric(
    edge_index: NDArray[np.int64], edge_weight: NDArray[np.float64], num_nodes: int
) -> scipy.sparse.csr_array:
    """D^-1/2 (A + I) D^-1/2 with in-degrees (GCN)."""
    looped = _adjacency(edge_index, edge_weight, num_nodes) + scipy.sparse.eye_array(num_nodes)
    scale = scipy.sparse.diags_array(_power(looped.sum(axis=1), -0.5))
    return scale @ looped @ scale
