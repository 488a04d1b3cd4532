"""One client's part of a symmetric operator: its own product, and what it owes to other clients.

A product ``Y = L X`` over the whole graph takes ``phases`` rounds (two for A A'). In each one

1. every client computes ``owed(X)``: one row for each of its external nodes, in their order in
   the columns of its adjacency rows; the rows go to the nodes' owners;
2. the owner of a node gets the sum over all other clients, ``received`` (zero rows for nodes
   without a foreign neighbour), and with it ``sums(X)`` summed over all clients;
3. ``combine(X, received, sums)`` is the input of the next phase or, after the last, ``Y``.

Operators are divided by ``unit``, so that no entry of ``owed``, ``received`` and ``sums`` is
larger than 64 times the 2-norm of its column of X over all clients. Eigenvalues are multiplied
by it in the end.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class LocalOperator(ABC):
    """One client's part of an operator.

    Attributes
    ----------
    unit
        What the operator was divided by.
    center, spread
        Rough mean and standard deviation of the (divided) operator's eigenvalues.
    phases
        Rounds of block products that one application takes.
    """

    unit: float
    center: float
    spread: float
    phases: int

    @property
    @abstractmethod
    def nodes(self) -> int:
        """Number of the client's own nodes."""

    @abstractmethod
    def owed(self, X: Array, phase: int = 0) -> Array:
        """Products that the other clients need, one row per external node."""

    @abstractmethod
    def sums(self, X: Array, phase: int = 0) -> Array:
        """Numbers of which :meth:`combine` needs the sum over all clients (often none)."""

    @abstractmethod
    def combine(self, X: Array, received: Array, sums: Array, phase: int = 0) -> Array:
        """The client's rows of the product."""

    def present(self, U: Array) -> Array:
        """Rows of the eigenvectors as the user sees them, from orthonormal ones."""
        return U

    def unpresent(self, U: Array) -> Array:
        """Rows of orthonormal eigenvectors, from those that the user sees."""
        return U

    def sums_length(self, width: int, phase: int = 0) -> int:
        """Length of :meth:`sums` for a block of ``width`` columns."""
        return int(self.sums(np.zeros((self.nodes, width)), phase).size)


@dataclass(frozen=True, eq=False)
class SplitOperator(LocalOperator):
    """A symmetric matrix that follows the edges, plus at most one product of two vectors.

    Attributes
    ----------
    local
        CSR (n, n): the client's diagonal block.
    owe
        CSR (m, n): rows of external nodes, columns of own nodes.
    back
        (n,) factors of the received rows.
    spike
        (n,) the client's part of v, when the operator has a term ``- v v'``.
    scaling
        (n,) factors from orthonormal eigenvectors to those that are presented.
    """

    local: Any
    owe: Any
    back: Array
    unit: float
    center: float
    spread: float
    spike: Array | None = None
    scaling: Array | None = None
    phases: int = 1

    @property
    def nodes(self) -> int:
        """Number of the client's own nodes."""
        return int(self.local.shape[0])

    def owed(self, X: Array, phase: int = 0) -> Array:
        """Products that the other clients need, one row per external node."""
        return np.asarray(self.owe @ X)

    def sums(self, X: Array, phase: int = 0) -> Array:
        """Inner products with the spike, if there is one."""
        return np.zeros(0) if self.spike is None else self.spike @ X

    def combine(self, X: Array, received: Array, sums: Array, phase: int = 0) -> Array:
        """The client's rows of the product."""
        Y = np.asarray(self.local @ X)
        Y += self.back[:, None] * received
        if self.spike is not None:
            Y -= self.spike[:, None] * sums
        return Y

    def present(self, U: Array) -> Array:
        """Rows of the eigenvectors as the user sees them, from orthonormal ones."""
        return U if self.scaling is None else self.scaling[:, None] * U

    def unpresent(self, U: Array) -> Array:
        """Rows of orthonormal eigenvectors, from those that the user sees."""
        if self.scaling is None:
            return U
        scaling = self.scaling[:, None]
        return np.divide(U, scaling, where=scaling > 0.0, out=np.zeros_like(U))


@dataclass(frozen=True, eq=False)
class GramOperator(LocalOperator):
    """A A' of a directed graph: first y = A' x along the edges, then A y against them.

    Attributes
    ----------
    own
        CSR (n, n): edges among own nodes, rows are sources.
    own_transposed
        Its transpose.
    owe
        CSR (m, n) for each phase: rows of external nodes, columns of own nodes.
    """

    own: Any
    own_transposed: Any
    owe: tuple[Any, Any]
    unit: float
    center: float
    spread: float
    phases: int = 2

    @property
    def nodes(self) -> int:
        """Number of the client's own nodes."""
        return int(self.own.shape[0])

    def owed(self, X: Array, phase: int = 0) -> Array:
        """Products that the other clients need, one row per external node."""
        return np.asarray(self.owe[phase] @ X)

    def sums(self, X: Array, phase: int = 0) -> Array:
        """Nothing."""
        return np.zeros(0)

    def combine(self, X: Array, received: Array, sums: Array, phase: int = 0) -> Array:
        """The client's rows of A' X (first phase) or A X (second)."""
        matrix = self.own_transposed if phase == 0 else self.own
        return np.asarray(matrix @ X) + received
