"""The few totals of the whole graph that operators need, from one small sum before the first step.

Each client contributes :func:`contribution`; the sum over all clients gives :class:`Totals`. Every
number in it lies between 0 and 1, so that any sum back end carries it: a total travels as digits
in base 2^20, the largest degree as a mark in a table of powers of two (its sum tells how many
clients have their largest degree in that octave, and nothing finer).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError

Array = NDArray[np.float64]

DIGITS = 4
BASE = 2.0**20
OCTAVES = 64
LOWEST = -20
LENGTH = 4 * DIGITS + 2 * OCTAVES


@dataclass(frozen=True)
class Totals:
    """Totals over all clients.

    Attributes
    ----------
    nodes
        Number of nodes of the whole graph.
    degree, degree_squares, weight_squares
        Sums of the (weighted) degrees, of their squares, and of the squared edge weights.
    out_limit, in_limit
        Powers of two above the largest weighted out- and in-degree (1 for a graph without edges).
    """

    nodes: int
    degree: float
    degree_squares: float
    weight_squares: float
    out_limit: float
    in_limit: float

    @property
    def mean_degree(self) -> float:
        """Mean weighted degree."""
        return self.degree / max(self.nodes, 1)

    @classmethod
    def from_sums(cls, sums: Array) -> "Totals":
        """Read the summed contributions of all clients."""
        if sums.shape != (LENGTH,) or not np.isfinite(sums).all():
            raise ProtocolError(
                f"The sum of the totals has shape {sums.shape}; {LENGTH} finite numbers were "
                "expected: start a new job."
            )
        digits = sums[: 4 * DIGITS].reshape(4, DIGITS)
        nodes, degree, degree_squares, weight_squares = map(_from_digits, digits)
        out_marks, in_marks = sums[4 * DIGITS :].reshape(2, OCTAVES)
        return cls(
            nodes=round(nodes),
            degree=degree,
            degree_squares=degree_squares,
            weight_squares=weight_squares,
            out_limit=limit(out_marks),
            in_limit=limit(in_marks),
        )


def contribution(rows: Any, incoming: Any | None = None) -> Array:  # noqa: ANN401
    """What one client adds to the totals.

    Parameters
    ----------
    rows
        CSR matrix (n, n + m): the client's rows of the adjacency matrix.
    incoming
        The same of the transposed matrix (default: the graph is undirected).
    """
    out = _sums_of_rows(rows)
    into = out if incoming is None else _sums_of_rows(incoming)
    squares = float(np.dot(rows.data, rows.data))
    totals = (float(rows.shape[0]), float(out.sum()), float(np.dot(out, out)), squares)
    return np.concatenate([*map(_digits, totals), marks(out), marks(into)])


def _sums_of_rows(matrix: Any) -> Array:  # noqa: ANN401
    return np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()


def _digits(value: float) -> Array:
    """Digits of ``value`` in base 2^20, highest first, the last one after the point, below 1."""
    value = min(value, BASE ** (DIGITS - 1) - 1.0)
    digits = []
    for power in reversed(range(DIGITS - 1)):
        whole = np.floor(value / BASE**power)
        digits.append(whole / BASE)
        value -= whole * BASE**power
    return np.array([*digits, value])


def _from_digits(sums: Array) -> float:
    """Value of summed digits; the sums of whole digits are whole, so noise is rounded away."""
    value = float(sums[-1])
    for power, digit in enumerate(reversed(sums[:-1])):
        value += float(np.rint(digit * BASE)) * BASE**power
    return value


def marks(values: Array) -> Array:
    """A one at the octave of the largest value."""
    found = np.zeros(OCTAVES)
    top = float(values.max(initial=0.0))
    if top > 0.0:
        octave = int(np.frexp(top)[1]) - 1 - LOWEST
        found[min(max(octave, 0), OCTAVES - 1)] = 1.0
    return found


def limit(summed: Array) -> float:
    """Power of two above all marked values; 1 without any."""
    present = np.flatnonzero(summed > 0.5)
    return 2.0 ** (int(present[-1]) + LOWEST + 1) if present.size else 1.0
