"""Factors by which an operator scales the rows of its eigenvectors before edges multiply them."""

import numpy as np
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.sums.programs import Krylov

Array = NDArray[np.float64]


def row_scaling(program: Krylov, subgraph: Subgraph) -> Array:
    """(n_i,) from the rows that an organisation keeps to those in A Q, but for one factor.

    For `sym` it is (d_v + loops)^-1/2, for `regularised` (d_v + t)^-1/2; kept rows of `rw` have
    it already. Where t is the mean degree of the whole graph, the organisation's own stands for it.
    """
    degrees = subgraph.degrees()
    if program.operator not in ("sym", "regularised"):
        return np.ones_like(degrees)
    mean = float(degrees.mean())
    shift = mean if program.shift is None else program.shift
    added = program.loops if program.operator == "sym" else shift
    total = degrees + added
    roots: Array = np.divide(1.0, np.sqrt(total), out=np.zeros_like(total), where=total > 0.0)
    return roots
