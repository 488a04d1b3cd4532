"""The paper's Algorithm 2, "Decentralized Arnoldi": modified Gram-Schmidt, one sum at a time.

Iteration l takes l + 2 round trips (the product, l inner products, the norm), and the norm of the
start vector takes one: 5,251 for 100 vectors. One more at the end sums Q'Q.

The paper takes the eigenvectors of the Hessenberg matrix H = Q'LQ, as if Q'Q were I. Modified
Gram-Schmidt loses orthogonality as soon as an eigenvector with eigenvalue zero has converged, so
the measured Q'Q enters here: with it and L Q = [Q q] H, Q'LQ is known without Z. Where Q is
orthonormal, this is the symmetric part of H.
"""

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.spectral.ritz import SmallProblem, pack_upper, unpack_upper
from fedlap_app.spectral.solvers.base import INVARIANT, Round, Solver, SolverSettings

Array = NDArray[np.float64]


class Arnoldi(Solver):
    """One client's half of the paper's iteration.

    Attributes
    ----------
    r
        (own rows, 1) the vector that is being made orthogonal.
    H
        (vectors + 1, vectors) the upper Hessenberg matrix.
    step
        t: how many inner products of this iteration are done.
    """

    name = "arnoldi"
    keeps_images = False
    fields: ClassVar[tuple[str, ...]] = ("r", "H", "step")

    def _begin(self, start: Array) -> None:
        self.r = np.ascontiguousarray(start[:, :1])
        self.H = np.zeros((self.settings.vectors + 1, self.settings.vectors))
        self.step = 0
        self.mode = "norm"

    @classmethod
    def schedule(cls, settings: SolverSettings) -> Iterator[Round]:
        """The first norm, then for each vector a product, its inner products and its norm."""
        yield Round(0, 1)
        for columns in range(1, settings.vectors + 1):
            yield Round(1, 0)
            yield from (Round(0, 1) for _ in range(columns + 1))
        size = settings.vectors + 1
        yield Round(0, size * (size + 1) // 2)

    @classmethod
    def multiplications(cls, settings: SolverSettings) -> int:
        """One pass of Gram-Schmidt."""
        return settings.vectors**2

    def _operand(self) -> Array | None:
        return np.ascontiguousarray(self.Q[:, -1:]) if self.mode == "expand" else None

    def _small(self) -> Array:
        if self.mode == "expand":
            return np.zeros(0)
        if self.mode == "inner":
            return self.basis.Q[:, self.step, None].T @ self.r[:, 0]
        if self.mode == "norm":
            return self.r.T @ self.r[:, 0]
        Q = np.hstack([self.Q, self.r])
        return pack_upper(Q.T @ Q)

    def _small_length(self) -> int:
        size = self.columns + 1
        return {"expand": 0, "inner": 1, "norm": 1, "last": size * (size + 1) // 2}[self.mode]

    def _advance(self, product: Array, small: Array) -> None:
        if self.mode == "expand":
            self.r, self.step, self.mode = product, 0, "inner"
        elif self.mode == "inner":
            self.H[self.step, self.columns - 1] = small[0]
            self.r = self.r - small[0] * self.basis.Q[:, self.step, None]
            self.step += 1
            self.mode = "inner" if self.step < self.columns else "norm"
        elif self.mode == "norm":
            self._normalise(math.sqrt(max(float(small[0]), 0.0)))
        else:
            self.final, self.mode = small, "done"

    def _normalise(self, norm: float) -> None:
        """Append r to the basis, or stop at an invariant subspace or with enough vectors."""
        m = self.columns
        if m:
            self.H[m, m - 1] = norm
        size = float(np.abs(self.H).max(initial=0.0))
        if m and norm <= max(INVARIANT * size, math.sqrt(self.settings.noise)):
            # The paper's exit: r is zero but for rounding, and is left out of the certificate.
            self.r, self.mode = np.zeros_like(self.r), "last"
        elif m == self.settings.vectors:
            self.r, self.mode = self.r / norm, "last"
        else:
            self.basis.Q[:, m] = self.r[:, 0] / norm
            self.columns, self.mode = m + 1, "expand"

    def problem(self) -> SmallProblem:
        """The small eigenproblem, from H and the summed Q'Q."""
        self._require_done()
        m = self.columns
        gram = unpack_upper(self.final, m + 1)
        H = self.H[: m + 1, :m]
        ritz = gram[:m] @ H
        return SmallProblem(
            gram=gram[:m, :m],
            ritz=(ritz + ritz.T) / 2,
            squares=H.T @ gram @ H,
            unit=self.operator.unit,
            noise=self.settings.noise,
        )
