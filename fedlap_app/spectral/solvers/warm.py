"""A basis from an old one: Rayleigh-Ritz on old Ritz vectors and the largest of their residuals.

X are the old vectors on the graph as it is now. Products are taken of its first columns, the ones
that the old basis kept first, and of as many directions as are left of the vectors to exchange::

    send       A X1                          and  X'X
    send                                          X'Z1, Z1'Z1      (Z1 = L X1)
    E = the largest columns of Z1 - X (X'X)^-1 X'Z1, orthonormal
    send       A E
    send                                          Q'Q, Q'Z, Z'Z    (Q = [X E])

Columns of X without a product are locked: what L does among them is taken to be what it was. The
old eigenvalues say that. So no third of the sums of a cold start is needed, and the span goes
beyond the old one where the graph changed most.
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError
from fedlap_app.spectral import ordered
from fedlap_app.spectral.operators import LocalOperator
from fedlap_app.spectral.ritz import SmallProblem, SmallSolution, pack_upper, unpack_upper
from fedlap_app.spectral.solvers.base import INVARIANT, Basis, Round, Solver, SolverSettings

Array = NDArray[np.float64]

SHARE = 1e-2
"""A residual is a new direction when this share of its norm is outside of the others."""


def widths(old: int, vectors: int) -> tuple[int, int]:
    """Columns of the two products.

    Parameters
    ----------
    old
        Vectors of the old basis.
    vectors
        Vectors to exchange.
    """
    first = min(old, max(1, 2 * vectors // 3))
    return first, max(0, min(first, vectors - first))


class WarmStart(Solver):
    """One client's half of the iteration.

    Parameters
    ----------
    operator, settings, basis
        As of `Solver`; the storage has room for the old vectors and for those to exchange.
    start
        (own rows, r) the client's rows of the old vectors.
    values
        (r,) their eigenvalues, divided as the operator is.
    """

    name = "warm-start"
    fields: ClassVar[tuple[str, ...]] = ("old", "gram")

    def __init__(
        self,
        operator: LocalOperator,
        settings: SolverSettings,
        start: Array,
        values: Array,
        basis: Basis,
    ) -> None:
        self.values = values
        super().__init__(operator, settings, start, basis)

    def _begin(self, start: Array) -> None:
        self.old: int = start.shape[1]
        if self.values.shape != (self.old,) or self.basis.Q.shape[1] < self.old:
            raise ConfigError(
                f"{self.old} old vectors come with {self.values.size} eigenvalues and room for "
                f"{self.basis.Q.shape[1]}: start from a basis of the same settings"
            )
        self.first, self.most = widths(self.old, self.settings.vectors)
        self.gram = np.zeros((0, 0))
        self.basis.Q[:, : self.old] = start
        self.columns = self.old
        self.mode = "first"

    @classmethod
    def schedule(cls, settings: SolverSettings) -> Iterator[Round]:
        """Two products, the sums between them, and the last sums."""
        old = settings.old
        first, second = widths(old, settings.vectors)
        yield Round(first, _upper(old))
        yield Round(0, old * first + _upper(first))
        if second:
            yield Round(second, 0)
        yield Round(0, _last_length(old + second, first + second))

    @classmethod
    def multiplications(cls, settings: SolverSettings) -> int:
        """Inner products and projections of both products."""
        first, second = widths(settings.old, settings.vectors)
        return 6 * first**2 + 4 * first * second + 6 * second**2

    @property
    def multiplied(self) -> NDArray[np.int64]:
        """Columns whose product is known."""
        found: list[int] = [*range(self.first), *range(self.old, self.columns)]
        return np.array(found, dtype=np.int64)

    def _operand(self) -> Array | None:
        if self.mode == "first":
            return np.ascontiguousarray(self.Q[:, : self.first])
        if self.mode == "second":
            return np.ascontiguousarray(self.Q[:, self.old :])
        return None

    def _small(self) -> Array:
        if self.mode == "first":
            return pack_upper(self.Q.T @ self.Q)
        if self.mode == "residuals":
            images = self.Z[:, : self.first]
            return np.concatenate([(self.Q.T @ images).ravel(), pack_upper(images.T @ images)])
        if self.mode == "second":
            return np.zeros(0)
        images = self.Z[:, self.multiplied]
        parts = (pack_upper(self.Q.T @ self.Q), (self.Q.T @ images).ravel())
        return np.concatenate([*parts, pack_upper(images.T @ images)])

    def _small_length(self) -> int:
        if self.mode == "first":
            return _upper(self.old)
        if self.mode == "residuals":
            return self.old * self.first + _upper(self.first)
        if self.mode == "second":
            return 0
        return _last_length(self.columns, self.multiplied.size)

    def _advance(self, product: Array, small: Array) -> None:
        if self.mode == "first":
            self.basis.Z[:, : self.first] = product
            self.gram, self.mode = unpack_upper(small, self.old), "residuals"
        elif self.mode == "residuals":
            self._expand(small)
            self.mode = "second" if self.columns > self.old else "last"
        elif self.mode == "second":
            self.basis.Z[:, self.old : self.columns] = product
            self.mode = "last"
        else:
            self.final, self.mode = small, "done"

    def _expand(self, small: Array) -> None:
        """Append the largest residuals; every client takes the same ones."""
        split = self.old * self.first
        cross = small[:split].reshape(self.old, self.first)
        outside = ordered.skipping_cholesky(self.gram, SHARE**2 * np.diag(self.gram), self.old)
        inverse = ordered.inverse_upper(outside.R[:, outside.accepted])
        inside = ordered.product(np.ascontiguousarray(inverse.T), cross[outside.accepted])
        rest = unpack_upper(small[split:], self.first) - ordered.product(
            np.ascontiguousarray(inside.T), inside
        )
        rest = (rest + rest.T) / 2
        chosen = np.sort(np.argsort(-np.diag(rest), kind="stable")[: self.most])
        least = np.maximum(SHARE**2 * np.diag(rest), self._resolution())[chosen]
        factor = ordered.skipping_cholesky(rest[np.ix_(chosen, chosen)], least, self.most)
        taken = chosen[factor.accepted]
        residuals = self.Z[:, taken] - self.Q[:, outside.accepted] @ (inverse @ inside)[:, taken]
        residuals = residuals @ ordered.inverse_upper(factor.R[:, factor.accepted])
        self.basis.Q[:, self.old : self.old + taken.size] = residuals
        self.columns = self.old + taken.size

    def _resolution(self) -> float:
        """Smallest squared norm that can be told from zero."""
        return 100.0 * max(100.0 * self.settings.noise, INVARIANT**2)

    def problem(self) -> SmallProblem:
        """The small eigenproblem, with what locked columns had in place of what is not known."""
        self._require_done()
        m, known = self.columns, self.multiplied
        sizes = np.cumsum([_upper(m), m * known.size])
        gram, cross, squares = np.split(self.final, sizes)
        G, C = unpack_upper(gram, m), cross.reshape(m, known.size)
        Z = self._locked_images(G)
        ritz = (Z + Z.T) / 2
        ritz[:, known], ritz[known, :] = C, C.T
        ritz[np.ix_(known, known)] = (C[known] + C[known].T) / 2
        shifts = np.zeros(m)
        shifts[: self.old] = self.values
        full = shifts[:, None] * G * shifts
        full[:, known] = shifts[:, None] * C
        full[known, :] = full[:, known].T
        full[np.ix_(known, known)] = unpack_upper(squares, known.size)
        return SmallProblem(G, ritz, full, self.operator.unit, self.settings.noise)

    def _locked_images(self, gram: Array) -> Array:
        """Q'L Q as if every old vector were an eigenvector still."""
        images = np.zeros_like(gram)
        images[:, : self.old] = gram[:, : self.old] * self.values
        return images

    def turned(self, solution: SmallSolution) -> SmallSolution:
        """The solution turned within its span to be as near as possible to the old vectors.

        Procrustes: of all orthogonal R the one with the least ||Q Y R - X||. A model that reads
        the old vectors then reads the new ones. The values become Rayleigh quotients.
        """
        m = self.columns
        near = solution.Y.T @ unpack_upper(self.final[: _upper(m)], m)[:, : self.old]
        left, _, right = np.linalg.svd(near, full_matrices=False)
        R = left @ right
        values = np.einsum("ij,i,ij->j", R, solution.eigenvalues, R)
        return SmallSolution(np.ascontiguousarray(solution.Y @ R), values)


def _last_length(columns: int, multiplied: int) -> int:
    """Numbers of the last sums."""
    return _upper(columns) + columns * multiplied + _upper(multiplied)


def _upper(size: int) -> int:
    return size * (size + 1) // 2
