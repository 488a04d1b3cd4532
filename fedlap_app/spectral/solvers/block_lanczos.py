"""Block Lanczos with one round trip per block: the default solver.

The product of a raw block of candidates U travels together with its inner products; the block is
made orthonormal when the sums are there, and the product with it, because L is linear::

    send       A U (to the neighbours)  and  Q'U, U'U, Q'q (q: the block accepted last)
    receive    W = L U  and the sums  S = Q'U,  G = Q'Q
    C = G^-1 S,  R'R = U'U - S'C                        (Cholesky, nearly dependent columns skipped)
    q = (U - Q C) R^-1,   z = (W - Z C) R^-1            append to Q and Z = L Q
    next U = (z - shift q - what Q and z have in common by symmetry) / expected norm

- G is I up to rounding or noise. To project with its inverse keeps errors in one block's
  orthogonality from growing in the following ones.
- A candidate that is nearly in the span of Q cannot be normalised well from its inner products
  (cancellation). It is skipped, and what is left of it is scaled up and tried again in the next
  round; it is dropped when it is below ``INVARIANT`` of the operator's norm. No candidates left:
  the subspace is invariant.
- Errors F = Z - L Q follow F_new = (error of a sum - F C) R^-1. ``shift``, the mean Rayleigh
  quotient of the block before, keeps C small; ``errors`` bounds the amplification, and when it
  gets too large one round multiplies the accepted block itself (``refresh``).
"""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.spectral import ordered
from fedlap_app.spectral.ritz import pack_upper, unpack_upper
from fedlap_app.spectral.solvers.base import INVARIANT, Round, Solver, SolverSettings

Array = NDArray[np.float64]

SHARE = 1e-2
"""A candidate is accepted when this share of its norm is outside of the span of Q."""

MARGIN = 4.0
"""How much larger than in the block before the norms of fresh candidates may become."""


class BlockLanczos(Solver):
    """One client's half of the one-round block Lanczos iteration.

    Attributes
    ----------
    candidates
        (own rows, width) U, columns with a norm of about one or less.
    gain, level
        Per candidate: part of L q that a norm of one stands for, absolute and as a share of the
        operator's norm.
    parent
        Per candidate: number of the basis vector q that it is the image of, -1 in the first block.
    fresh
        Per candidate: whether it is in its first round.
    last
        First column of the block accepted last.
    gram
        Q'Q as far as known: all but the last block.
    size, scale, shift
        Largest Rayleigh quotient or part outside of Q so far (at most the norm of L); expected
        norm of fresh images; mean Rayleigh quotient of the last block.
    errors
        Per basis vector: bound of the error of its column of Z, in errors of one sum.
    tied, ties
        The basis vectors that the last block comes from, and their inner products with L q for
        each q in that block, known by symmetry.
    """

    name = "block-lanczos"
    fields: ClassVar[tuple[str, ...]] = (
        "candidates",
        "level",
        "gain",
        "parent",
        "fresh",
        "last",
        "gram",
        "size",
        "scale",
        "shift",
        "errors",
        "ties",
        "tied",
    )

    def _begin(self, start: Array) -> None:
        width = min(start.shape[1], self.settings.vectors)
        self.candidates = np.ascontiguousarray(start[:, :width])
        self.level = np.ones(width)
        self.gain = np.ones(width)
        self.parent = np.full(width, -1)
        self.fresh = np.zeros(width, dtype=bool)
        self.last = 0
        self.gram = np.zeros((0, 0))
        self.size = max(abs(self.operator.center), self.operator.spread, 2.0**-20)
        self.scale = max(self.operator.spread, 2.0**-20)
        self.shift = self.operator.center
        self.errors = np.zeros(0)
        self.ties = np.zeros((0, 0))
        self.tied = np.zeros(0, dtype=np.int64)

    @classmethod
    def schedule(cls, settings: SolverSettings) -> Iterator[Round]:
        """A round a block, and the last sums."""
        columns = last = 0
        while columns < settings.vectors:
            width = min(settings.block, settings.vectors - columns)
            yield Round(width, columns * (last + width) + width * (width + 1) // 2)
            columns, last = columns + width, width
        yield Round(0, 3 * (columns * (columns + 1) // 2))

    @classmethod
    def multiplications(cls, settings: SolverSettings) -> int:
        """Inner products and projections, block by block."""
        columns = total = 0
        for step in cls.schedule(settings):
            total += 4 * columns * step.width + 6 * step.width**2
            columns += step.width
        return total

    def _operand(self) -> Array | None:
        if self.mode == "expand":
            return self.candidates
        if self.mode == "refresh":
            return np.ascontiguousarray(self.Q[:, self.last :])
        return None

    def _small(self) -> Array:
        if self.mode == "refresh":
            return np.zeros(0)
        if self.mode == "last":
            return self._last_sums()
        U = self.candidates
        both = np.hstack([self.Q[:, self.last :], U])
        return np.concatenate([(self.Q.T @ both).ravel(), pack_upper(U.T @ U)])

    def _small_length(self) -> int:
        m, width = self.columns, int(self.candidates.shape[1])
        if self.mode == "expand":
            return m * (m - self.last + width) + width * (width + 1) // 2
        return 0 if self.mode == "refresh" else self._last_length()

    def _advance(self, product: Array, small: Array) -> None:
        if self.mode == "last":
            self.final, self.mode = small, "done"
        elif self.mode == "refresh":
            self.basis.Z[:, self.last : self.columns] = product
            self.errors[self.last :] = 1.0
            self._prepare()
        else:
            self._expand(product, small)

    def _expand(self, W: Array, small: Array) -> None:
        """Make the candidates orthonormal and append them."""
        m, width = self.columns, self.candidates.shape[1]
        split = m * (m - self.last + width)
        sums = small[:split].reshape(m, m - self.last + width)
        S = sums[:, m - self.last :]
        self._note_gram(sums[:, : m - self.last])
        own = unpack_upper(small[split:], width)
        C, P = self._project(S, own)
        self._note_quotients(S, P)
        factor = ordered.skipping_cholesky(P, self._least(own), self._room())
        inverse = ordered.inverse_upper(factor.R[:, factor.accepted])
        U = self.candidates - self.Q @ C
        q = U[:, factor.accepted] @ inverse
        z = (W - self.Z @ C)[:, factor.accepted] @ inverse
        self._note_errors(C[:, factor.accepted], inverse)
        self.basis.Q[:, m : m + q.shape[1]] = q
        self.basis.Z[:, m : m + q.shape[1]] = z
        self.columns, self.last = m + q.shape[1], m
        known = self.parent >= 0
        self.tied = self.parent[known]
        self.ties = (self.gain * factor.R)[:, known].T
        self._carry(U, q, factor)
        if self.errors[self.last :].max(initial=0.0) > self._limit() and self._room():
            self.mode = "refresh"
        else:
            self._prepare()

    def _note_gram(self, part: Array) -> None:
        """Complete Q'Q with its last columns."""
        m, last = self.columns, self.last
        gram = np.zeros((m, m))
        gram[:last, :last] = self.gram
        gram[:, last:] = part
        gram[last:, :] = part.T
        gram[last:, last:] = (part[last:] + part[last:].T) / 2
        self.gram = gram

    def _project(self, S: Array, own: Array) -> tuple[Array, Array]:
        """G^-1 S to second order in G - I, and the inner products outside of the span of Q."""
        defect = self.gram - np.eye(self.columns)
        first = defect @ S
        C = S - first + defect @ first
        # The second term is tiny: what BLAS rounds differently in it is lost in the difference.
        P = own - ordered.product(S.T, S) + S.T @ (S - C)
        return C, (P + P.T) / 2

    def _note_quotients(self, S: Array, P: Array) -> None:
        """Mean Rayleigh quotient and norm of the operator, as far as seen."""
        fresh = np.flatnonzero(self.fresh)
        if fresh.size == 0:
            return
        quotients = self.shift + self.gain[fresh] * S[self.parent[fresh], fresh]
        outside = self.gain[fresh] * np.sqrt(np.maximum(np.diag(P)[fresh], 0.0))
        self.shift = float(np.add.accumulate(quotients)[-1]) / fresh.size
        seen = max(float(np.abs(quotients).max()), float(outside.max()), 2.0**-20)
        self.size = max(self.size, seen) if self.last else seen
        away = float(np.abs(quotients - self.shift).max())
        self.scale = min(max(MARGIN * max(away, float(outside.max())), 1e-4 * self.size), self.size)

    def _least(self, own: Array) -> Array:
        """Smallest squared norm outside of Q with which a candidate is accepted."""
        return np.maximum(SHARE**2 * np.diag(own), 100.0 * self._resolution())

    def _resolution(self) -> float:
        """Smallest squared norm that can be told from zero."""
        return max(100.0 * self.settings.noise, INVARIANT**2)

    def _room(self) -> int:
        """Basis vectors that are still missing."""
        return self.settings.vectors - self.columns

    def _limit(self) -> float:
        """Largest error of a column of Z, in errors of one sum, that is left alone."""
        return 1e3 if self.settings.noise > 1e-10 else 1e6

    def _note_errors(self, C: Array, inverse: Array) -> None:
        """Bound the errors of the new columns of Z by those of a sum and of the old columns."""
        old = ordered.product(self.errors[:, None] * C, inverse)
        bound = ordered.norm(inverse) + ordered.norm(old)
        self.errors = np.append(self.errors, np.full(inverse.shape[1], bound))

    def _carry(self, U: Array, q: Array, factor: ordered.Factor) -> None:
        """Scale what is left of skipped candidates up for another try, or drop it."""
        skipped = factor.skipped
        left = np.sqrt(np.maximum(factor.left[skipped], self._resolution()))
        again = self.level[skipped] * left > INVARIANT
        kept, scale = skipped[again], np.minimum(left[again], 1.0)
        self.candidates = (U[:, kept] - q @ factor.R[:, kept]) / scale
        self.level = self.level[kept] * scale
        self.gain = self.gain[kept] * scale
        self.parent = self.parent[kept]
        self.fresh = np.zeros(kept.size, dtype=bool)

    def _prepare(self) -> None:
        """Join carried candidates and the images of the last block to the next block."""
        q = self.Q[:, self.last :]
        images = self.Z[:, self.last :] - self.shift * q
        images -= self.basis.Q[:, self.tied] @ self.ties
        width = min(self.candidates.shape[1] + q.shape[1], self._room())
        new = max(width - self.candidates.shape[1], 0)
        self.candidates = np.hstack([self.candidates, images[:, :new] / self.scale])[:, :width]
        self.level = np.append(self.level, np.full(new, self.scale / self.size))[:width]
        self.gain = np.append(self.gain, np.full(new, self.scale))[:width]
        self.parent = np.append(self.parent, np.arange(self.last, self.last + new))[:width]
        self.fresh = np.append(self.fresh, np.ones(new, dtype=bool))[:width]
        self.mode = "expand" if width else "last"
