"""Single-vector Arnoldi with full reorthogonalisation in two round trips a step (DCGS2).

The second pass of Gram-Schmidt is delayed into the next step, so that one sum serves both: round
one multiplies the candidate u, round two sums Q'u, Q'w, u'u, u'w and w'w with w = L u. Then::

    q = (u - Q s) / rho            second pass, s = Q'u is tiny
    z = (w - Z s) / rho            = L q, because L is linear
    u = z - [Q q] [Q q]'z          first pass; the coefficients follow from the same sums

The next u is scaled to a norm of about one, as well as the sums tell it.
"""

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.spectral import ordered
from fedlap_app.spectral.solvers.base import INVARIANT, Round, Solver, SolverSettings

Array = NDArray[np.float64]


class Dcgs2(Solver):
    """One client's half of the DCGS2 iteration.

    Attributes
    ----------
    candidate, image
        (own rows, 1) u and L u.
    ritz
        Q'Z so far.
    gain
        What a norm of one of u stands for.
    size
        Lower bound of the operator's norm.
    """

    name = "dcgs2"
    fields: ClassVar[tuple[str, ...]] = ("candidate", "image", "ritz", "gain", "size")

    def _begin(self, start: Array) -> None:
        self.candidate = np.ascontiguousarray(start[:, :1])
        self.image = self.candidate[:, :0]
        self.ritz = np.zeros((0, 0))
        self.gain = math.inf
        self.size = 0.0

    @classmethod
    def schedule(cls, settings: SolverSettings) -> Iterator[Round]:
        """Two rounds a vector, and the last sums."""
        for columns in range(settings.vectors):
            yield Round(1, 0)
            yield Round(0, 2 * columns + 3)
        yield Round(0, 3 * (settings.vectors * (settings.vectors + 1) // 2))

    @classmethod
    def multiplications(cls, settings: SolverSettings) -> int:
        """Two passes of Gram-Schmidt."""
        return 5 * settings.vectors**2 // 2

    def _operand(self) -> Array | None:
        return self.candidate if self.mode == "expand" else None

    def _small(self) -> Array:
        if self.mode == "expand":
            return np.zeros(0)
        if self.mode == "last":
            return self._last_sums()
        pair = np.hstack([self.candidate, self.image])
        inner = pair.T @ pair
        return np.concatenate([(self.Q.T @ pair).T.ravel(), inner[np.triu_indices(2)]])

    def _small_length(self) -> int:
        if self.mode == "expand":
            return 0
        return 2 * self.columns + 3 if self.mode == "orthogonalise" else self._last_length()

    def _advance(self, product: Array, small: Array) -> None:
        if self.mode == "expand":
            self.image, self.mode = product, "orthogonalise"
        elif self.mode == "last":
            self.final, self.mode = small, "done"
        else:
            self._append(small)

    def _append(self, small: Array) -> None:
        """Second pass for the candidate, then first pass for its image."""
        m = self.columns
        s, t = small[:m], small[m : 2 * m]
        uu, uw, ww = map(float, small[2 * m :])
        square = uu - ordered.dot(s, s)
        if square <= 100.0 * self.settings.noise or (
            math.sqrt(square) * self.gain <= INVARIANT * self.size
        ):
            self.mode = "last"
            return
        rho = math.sqrt(square)
        self.basis.Q[:, m] = (self.candidate[:, 0] - self.Q @ s) / rho
        self.basis.Z[:, m] = (self.image[:, 0] - self.Z @ s) / rho
        self.columns = m + 1
        # L is symmetric, so u'Z = t'; s is tiny, so w'w / rho^2 is z'z well enough for a scale.
        across = (t - self.ritz @ s) / rho
        quotient = (uw - 2.0 * ordered.dot(s, t) + float(s @ self.ritz @ s)) / square
        self._extend_ritz(np.append(across, quotient))
        self._next_candidate(self.ritz[:, m], ww / square)

    def _extend_ritz(self, column: Array) -> None:
        m = len(column)
        ritz = np.zeros((m, m))
        ritz[:-1, :-1] = self.ritz
        ritz[:, -1] = ritz[-1, :] = column
        self.ritz = ritz

    def _next_candidate(self, coefficients: Array, square: float) -> None:
        """The image of the last vector, outside of the basis, scaled to a norm of about one."""
        left = math.sqrt(max(square - ordered.dot(coefficients, coefficients), 0.0))
        self.size = max(self.size, abs(float(coefficients[-1])), left)
        floor = max(math.sqrt(100.0 * self.settings.noise), 1e-6)
        self.gain = max(left, floor * self.size, 2.0**-20 * INVARIANT)
        if self.columns == self.settings.vectors:
            self.mode = "last"
            return
        u = self.Z[:, -1:] - self.Q @ coefficients[:, None]
        self.candidate = np.ascontiguousarray(u / self.gain)
        self.image = u[:, :0]
        self.mode = "expand"
