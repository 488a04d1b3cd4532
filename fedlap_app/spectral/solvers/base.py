"""What every solver has in common: rounds, block products, and a state that can be saved.

A solver is one client's half of the iteration. Each round the client sends ``contribute()`` and
gets back sums over all clients, which it gives to ``absorb``; when ``done``, ``problem()`` is the
small eigenproblem, the same at every client::

    while not solver.done:
        mine = solver.contribute()          # changes nothing: asked twice, it answers the same
        received, small = ...               # block rows owed to us, and the summed small vector
        solver.absorb(received, small)
    solution = solve_small(solver.problem(), rank, keep)    # at one client only
    rows = solver.finish(solution.Y)

All clients are in the same round with the same widths, because whatever they decide depends on
the summed small vectors only. The large arrays Q and Z (own rows x vectors, column-major) belong
to the caller and are only ever appended to: a client may keep them in memory-mapped files, write
the columns first and ``state()`` after them, and go on from any saved state. One rewrite exists:
``block-lanczos`` may replace the columns of Z that it appended last.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ConfigError, ProtocolError
from fedlap_app.spectral.operators import LocalOperator
from fedlap_app.spectral.ritz import SmallProblem, pack_upper, unpack_upper

Array = NDArray[np.float64]

INVARIANT = 1e-7
"""A new direction below this share of the operator's norm means an invariant subspace."""


@dataclass(frozen=True)
class SolverSettings:
    """What all clients agree on before the first round.

    Attributes
    ----------
    vectors
        M, the number of basis vectors to exchange.
    block
        Columns of a block (``arnoldi`` and ``dcgs2`` work on single vectors).
    noise
        Absolute error of one summed value (default: 0, exact sums).
    old
        Vectors of the basis that the iteration starts from (default: 0, it starts at random).
    """

    vectors: int
    block: int = 10
    noise: float = 0.0
    old: int = 0

    def __post_init__(self) -> None:
        if self.vectors < 1 or self.block < 1:
            raise ConfigError(
                f"vectors is {self.vectors} and block is {self.block}; both must be at least 1."
            )
        if not 0.0 <= self.noise <= 1e-6:
            raise ConfigError(
                f"The noise of a sum is {self.noise}; at most 1e-6 can be corrected: "
                "use a finer scale."
            )


@dataclass(frozen=True)
class Round:
    """What one round carries: columns of the block product, and small numbers."""

    width: int
    small: int


@dataclass(frozen=True, eq=False)
class Contribution:
    """What a client adds to one round.

    Attributes
    ----------
    block
        One row per external node, for the nodes' owners; None in a round without products.
    small
        Numbers that are summed over all clients and that all clients get to know.
    """

    block: Array | None
    small: Array


@dataclass(frozen=True, eq=False)
class Basis:
    """Storage of one client's rows of the basis Q and of Z = L Q, filled from the left."""

    Q: Array
    Z: Array

    @classmethod
    def allocate(cls, rows: int, vectors: int) -> "Basis":
        """Storage in memory."""
        return cls(*(np.zeros((rows, vectors), order="F") for _ in range(2)))


class Solver(ABC):
    """One client's half of an iteration (see the module's docstring).

    ``keeps_images`` says whether the solver uses Z; where not, it may have no columns.

    Parameters
    ----------
    operator
        The client's part of the operator.
    settings
        The settings that all clients share.
    start
        (own rows, block) the client's rows of the start block.
    basis
        Storage for Q and Z (default: in memory).
    """

    name: ClassVar[str]
    keeps_images: ClassVar[bool] = True
    fields: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        operator: LocalOperator,
        settings: SolverSettings,
        start: Array,
        basis: Basis | None = None,
    ) -> None:
        width = start.shape[1] if start.ndim == 2 else 0
        if start.shape != (operator.nodes, width) or width < 1:
            raise ConfigError(
                f"The start block has shape {start.shape}; ({operator.nodes}, block) was expected."
            )
        self.operator = operator
        self.settings = settings
        self.basis = basis or Basis.allocate(operator.nodes, settings.vectors)
        self.rounds = 0
        self.columns = 0
        self.mode = "expand"
        self.phase = 0
        self.middle = np.zeros((operator.nodes, 0))
        self.final = np.zeros(0)
        self._begin(start)

    @abstractmethod
    def _begin(self, start: Array) -> None:
        """Make the solver's own fields from the start block."""

    @classmethod
    @abstractmethod
    def schedule(cls, settings: SolverSettings) -> Iterator[Round]:
        """Steps before they run, as if all vectors were found and no block had to be repeated."""

    @classmethod
    @abstractmethod
    def multiplications(cls, settings: SolverSettings) -> int:
        """Multiplications with one own row of Q and Z until the last round."""

    @property
    def done(self) -> bool:
        """Whether the last round is over."""
        return self.mode == "done"

    @property
    def Q(self) -> Array:  # noqa: N802
        """Basis vectors so far."""
        return self.basis.Q[:, : self.columns]

    @property
    def Z(self) -> Array:  # noqa: N802
        """Operator times basis vectors so far."""
        return self.basis.Z[:, : self.columns]

    def contribute(self) -> Contribution:
        """What this client adds to the round; changes nothing."""
        operand = self._operand()
        if operand is None:
            return Contribution(None, self._small())
        if self.phase:
            operand = self.middle
        small = self.operator.sums(operand, self.phase)
        if self.phase == self.operator.phases - 1:
            small = np.concatenate([self._small(), small])
        return Contribution(self.operator.owed(operand, self.phase), small)

    def absorb(self, received: Array | None, small: Array) -> None:
        """Take in the sums of the round and prepare the next one."""
        operand = self._operand()
        if operand is None:
            self._advance(np.zeros((self.operator.nodes, 0)), self._checked(small, 0))
        elif received is None or received.shape != operand.shape:
            shape = None if received is None else received.shape
            raise ProtocolError(
                f"The received block has shape {shape}; {operand.shape} was expected: "
                "the clients are not in the same round."
            )
        else:
            self._multiply(self.middle if self.phase else operand, received, small)
        self.rounds += 1

    def _multiply(self, operand: Array, received: Array, small: Array) -> None:
        """Go one phase further in the product, and on from it after the last."""
        final = self.phase == self.operator.phases - 1
        extra = self.operator.sums_length(operand.shape[1], self.phase)
        own = self._checked(small, extra, final=final)
        product = self.operator.combine(operand, received, small[own.size :], self.phase)
        if final:
            self.phase, self.middle = 0, product[:, :0]
            self._advance(product, own)
        else:
            self.phase, self.middle = self.phase + 1, product

    def _checked(self, small: Array, extra: int, *, final: bool = True) -> Array:
        """The solver's own part of the summed numbers."""
        own = self._small_length() if final else 0
        if small.shape != (own + extra,) or not np.isfinite(small).all():
            raise ProtocolError(
                f"{small.size} summed numbers arrived; {own + extra} finite ones were expected: "
                "the clients are not in the same round."
            )
        return small[:own]

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Everything but Q and Z, as new arrays in C order that need no pickling."""
        names = ("rounds", "columns", "mode", "phase", "middle", "final", *self.fields)
        return {name: np.array(getattr(self, name), order="C") for name in names}

    def restore(self, state: dict[str, NDArray[np.generic]]) -> None:
        """Go on with the arrays of a saved state; Q and Z must hold the columns of that time."""
        for name, value in state.items():
            setattr(self, name, value.item() if value.ndim == 0 else value)

    def finish(self, Y: Array) -> Array:
        """The client's rows of the kept eigenvectors."""
        return self.operator.present(self.Q @ Y)

    def problem(self) -> SmallProblem:
        """The small eigenproblem, from the sums of the last round."""
        self._require_done()
        m = self.columns
        gram, ritz, squares = (unpack_upper(part, m) for part in np.split(self.final, 3))
        return SmallProblem(gram, ritz, squares, self.operator.unit, self.settings.noise)

    def _require_done(self) -> None:
        if not self.done:
            raise ProtocolError("The iteration is not over; go on with its rounds first.")

    def _last_sums(self) -> Array:
        """Upper triangles of Q'Q, of the symmetric part of Q'Z and of Z'Z."""
        cross = self.Q.T @ self.Z
        parts = (self.Q.T @ self.Q, (cross + cross.T) / 2, self.Z.T @ self.Z)
        return np.concatenate([pack_upper(part) for part in parts])

    def _last_length(self) -> int:
        return 3 * (self.columns * (self.columns + 1) // 2)

    @abstractmethod
    def _operand(self) -> Array | None:
        """The block that is multiplied in this round."""

    @abstractmethod
    def _small(self) -> Array:
        """The solver's numbers to sum in this round (in the last phase of a product)."""

    @abstractmethod
    def _small_length(self) -> int:
        """Length of :meth:`_small`, known to the receiver before it looks."""

    @abstractmethod
    def _advance(self, product: Array, small: Array) -> None:
        """Take in the product of the operand and the summed numbers."""
