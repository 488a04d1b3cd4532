"""Rows of a spectral basis for nodes that came after it was computed.

An eigenvector u of the normalised Laplacian to a small eigenvalue says nearly the same of two
neighbours once it is divided by the roots of their degrees. So a new node v gets
sqrt(d_v) * mean of u_w / sqrt(d_w) over all its neighbours w, each counted once. The row of a
foreign neighbour stays with its organisation; in its place stands the mean over those of the own
nodes that are its neighbours as well. Nothing is asked of anybody. Where a sealed sum over the
foreign neighbours' rows was asked for, it stands there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fedlap_app.graphs.subgraph import Subgraph

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

COMPUTED, EXTENDED, NONE = ORIGINS = "computed", "extended", "none"
"""Where a node's row comes from; `none`: no neighbour has one, directly or over others."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a basis for the nodes that an organisation has now.

    Attributes
    ----------
    U : (n, rank), zero where there is none.
    computed : (n,) whether the row is one of the basis.
    known : (n,) whether there is a row.
    """

    U: Array
    computed: Bools
    known: Bools

    @property
    def origins(self) -> NDArray[np.str_]:
        """COMPUTED, EXTENDED or NONE for every node."""
        names: NDArray[np.str_] = np.where(
            self.computed, COMPUTED, np.where(self.known, EXTENDED, NONE)
        )
        return names

    @property
    def codes(self) -> NDArray[np.uint8]:
        """Places of the origins in `ORIGINS`."""
        found: NDArray[np.uint8] = np.where(self.computed, 0, np.where(self.known, 1, 2)).astype(
            "u1"
        )
        return found


@dataclass(frozen=True, eq=False)
class Heard:
    """What foreign neighbours said of own nodes.

    Attributes
    ----------
    sums : (n, rank) of their rows, each divided by what its node's rows are divided by.
    counts : (n,) how many of them have a row.
    """

    sums: Array
    counts: Array


def links_of(part: Subgraph, operator: str) -> Any:  # noqa: ANN401
    """CSR (n, n + m): whose rows say something about whose; own nodes first, then foreign ones.

    Eigenvectors of A A' are alike where nodes point to the same ones: there all targets stand in
    the place of foreign neighbours, whose sides are those that point to them.
    """
    if operator != "directed":
        return part.symmetric_adjacency()
    nobody = sp.csr_array((part.num_nodes, part.num_nodes))
    return sp.hstack([nobody, part.out_adjacency()], format="csr")


def scale_of(operator: str, degrees: Array, added: float) -> Array:
    """What a row is divided by before rows are averaged.

    Parameters
    ----------
    operator
        Its name; only the symmetric ones scale a row with its node's degree.
    degrees
        Weighted degrees.
    added
        What the operator adds to every degree.
    """
    if operator in ("sym", "regularised"):
        return np.sqrt(degrees + added)
    return np.ones_like(degrees)


def extend(
    U: Array,
    computed: Bools,
    links: Any,  # noqa: ANN401
    old: Array,
    new: Array,
    held: Bools | None = None,
    heard: Heard | None = None,
) -> Rows:
    """Fill in the rows that are missing.

    Parameters
    ----------
    U, computed
        (n, rank) rows of the basis, and which of them are rows of the basis.
    links
        CSR (n, n + m): who is a neighbour of whom now, own nodes first, weights of any size.
    old, new
        (n,) what a row is divided by before rows are averaged, as of the basis, and what the mean
        is multiplied by, as of now.
    held
        Which rows there are (default: those of the basis); others came from neighbours before.
    heard
        What foreign neighbours said (default: nobody asked them).
    """
    links = unweighted(links)
    held = np.asarray(computed if held is None else held)
    known = np.array(held)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.where((known & (old > 0.0))[:, None], U / old[:, None], 0.0)
    while not known.all():
        # A node whose neighbours are all new waits for their rows.
        missing = np.flatnonzero(~known)
        means, found = neighbour_means(plain, known, links, missing, heard)
        if not found.any():
            break
        plain[missing[found]] = means[found]
        known[missing[found]] = True
    rows = np.where(held[:, None], U, plain * new[:, None])
    return Rows(rows, np.array(computed), known)


def left_out(U: Array, links: Any, nodes: Ints, scale: Array) -> tuple[Array, Bools]:  # noqa: ANN401
    """Rows that nodes with a row would get if they were new, and which of them would get one.

    Parameters
    ----------
    U
        (n, rank) rows of the basis.
    links
        As of `extend`.
    nodes
        Which nodes; each is left out by itself.
    scale
        (n,) what a row is divided by before rows are averaged.
    """
    known = scale > 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.where(known[:, None], U / scale[:, None], 0.0)
    means, found = neighbour_means(plain, known, unweighted(links), nodes)
    return means * scale[nodes, None], found


def neighbour_means(
    plain: Array,
    known: Bools,
    links: Any,  # noqa: ANN401
    nodes: Ints,
    heard: Heard | None = None,
) -> tuple[Array, Bools]:
    """Means over the neighbours of some nodes, and whether a node has a neighbour that counts.

    A node's own row counts nowhere, not even in what its foreign neighbours would say.
    """
    own = links[nodes][:, : links.shape[0]]
    if heard is None:
        total, count = _relayed(plain, known, links, nodes)
    else:
        total, count = heard.sums[nodes], heard.counts[nodes]
    total = total + own @ np.where(known[:, None], plain, 0.0)
    count = count + own @ known.astype(np.float64)
    means = np.divide(total, count[:, None], where=count[:, None] > 0.0, out=np.zeros_like(total))
    return means, count > 0.0


def _relayed(
    plain: Array,
    known: Bools,
    links: Any,  # noqa: ANN401
    nodes: Ints,
) -> tuple[Array, Array]:
    """What own neighbours of foreign neighbours say in their place, and how many are spoken for."""
    size = links.shape[0]
    wanted = links[nodes][:, size:]
    heard = np.unique(wanted.indices)
    foreign, back = wanted[:, heard], links[:, size + heard].T.tocsr()
    told = np.where(known[:, None], plain, 0.0)
    sums, counts = back @ told, back @ known.astype(np.float64)
    # What is said about a node by itself is taken out of the sum over the foreign node's sides.
    mine = known[nodes].astype(np.float64)
    ends = foreign.tocoo()
    others = counts[ends.col] - mine[ends.row]
    says = others > 0.0
    weight = np.divide(1.0, others, where=says, out=np.zeros_like(others))
    relayed = ends.copy()
    relayed.data = weight
    total = relayed.tocsr() @ sums
    total -= (mine * np.bincount(ends.row, weight, len(nodes)))[:, None] * plain[nodes]
    return total, np.bincount(ends.row[says], minlength=len(nodes)).astype(np.float64)


def unweighted(links: Any) -> Any:  # noqa: ANN401
    """Every neighbour counted once, nobody its own."""
    plain = links.copy()
    plain.data = np.ones_like(plain.data, dtype=np.float64)
    return plain
