"""What one sum of a round holds: parameters in 32 bits or fewer, then scores in 64 bits.

A member puts (w / W) times the change of every parameter into the sum, where w is its weight and W
that of all, so the sum is the weighted mean itself: what its bits hold does not depend on how many
members there are. Every tensor has a scale of its own, a power of two that all have agreed on.

In a ring of 16 or 12 bits every row has one, which follows from the sum that all opened last: a
member cuts off what is `ROOM` times the largest entry that the mean had there, and rounds the rest
up or down by lot, so that small entries are not lost but come seldom. The first sum of a stage,
before which there is none, has 32 bits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from math import isqrt, prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError, RunError
from fedlap_app.sums.checks import SLOTS, sum_of_squares
from fedlap_app.sums.fixed import from_fixed, to_fixed
from fedlap_app.sums.header import Sum
from fedlap_app.sums.kdf import digest, encode
from fedlap_app.sums.lanes import PAIRS, Lanes
from fedlap_app.sums.pads import CHUNK

SCORE_BITS = 20  # counts up to 2^40 / K exactly, losses to 1e-6
MOST_CONTRIBUTORS = 1 << 12
ROOM = 4.0
"""How much larger than the last mean of its row a change may be in a narrow ring, at least."""

_FLAT = 64.0  # a row has at least this part of the scale of its tensor

Words = NDArray[np.uint64]
Floats = NDArray[np.float64]
Named = Mapping[str, NDArray[Any]]
NOTHING: Named = MappingProxyType({})


@dataclass(frozen=True)
class Tensor:
    """One tensor of the model.

    Attributes
    ----------
    name, shape
        What it is called and how large it is.
    bits
        Fraction bits of its change: a sum is exact to `contributors` halves of 2^-bits.
    rows
        Fraction bits of each of its rows, in a narrow ring; empty: `bits` for all.
    """

    name: str
    shape: tuple[int, ...]
    bits: int = 24
    rows: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """Numbers in it."""
        return prod(self.shape)

    @property
    def height(self) -> int:
        """Rows with a scale of their own; a vector is one."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @property
    def limit(self) -> float:
        """What no number of its change may reach in 32 bits; every contributor rounds once."""
        return float((PAIRS.most - MOST_CONTRIBUTORS) * 2.0**-self.bits)

    def by_row(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Its numbers, one row for each scale."""
        return flat.reshape(len(self.fractions), -1)

    @cached_property
    def fractions(self) -> NDArray[np.int64]:
        """Fraction bits, one for each row or one for all."""
        return np.array(self.rows or (self.bits,), dtype=np.int64)


@dataclass(frozen=True)
class SumShape:
    """Shape of the sum of one round.

    Attributes
    ----------
    tensors
        The parameters, in their order.
    scores
        How many counts and losses follow.
    lanes
        How parameters lie in words.
    """

    tensors: tuple[Tensor, ...]
    scores: int
    lanes: Lanes = PAIRS

    @cached_property
    def narrow(self) -> int:
        """Words of 64 bits that hold several parameters each."""
        return -(-sum(tensor.size for tensor in self.tensors) // self.lanes.per_word)

    @cached_property
    def digest(self) -> bytes:
        """Hash of names, shapes and scales."""
        parts = (encode(each.name, each.bits, *each.shape) for each in self.tensors)
        ring = () if self.lanes == PAIRS else (self.lanes.bits,)
        return digest("training sum", self.scores, *ring, *parts)

    @cached_property
    def without_parameters(self) -> "SumShape":
        """The same scores of a model that is not trained any more."""
        return SumShape((), self.scores)

    @property
    def wide(self) -> "SumShape":
        """The same in 32 bits."""
        return SumShape(self.tensors, self.scores)

    def scales_after(self, mean: Named) -> bytes:
        """Exponents of all rows in the sum that follows one with this mean, a byte each."""
        whole = max((_largest(value) for value in mean.values()), default=0.0)
        found = bytearray()
        for tensor in self.tensors:
            rows = np.abs(mean[tensor.name]).reshape(tensor.height, -1).max(axis=1, initial=0.0)
            least = (_largest(mean[tensor.name]) or whole or 1.0) / _FLAT
            exponents = np.frexp(ROOM * np.maximum(rows, least))[1]
            found += np.clip(exponents, -100, 100).astype(np.int8).tobytes()
        return bytes(found)

    def scaled(self, scales: bytes) -> "SumShape":
        """The same with the scales that `scales_after` gave."""
        exponents, tensors = np.frombuffer(scales, dtype=np.int8), []
        for tensor in self.tensors:
            mine, exponents = np.split(exponents, [tensor.height])
            rows = self.lanes.bits - 1 - mine.astype(np.int64)
            tensors.append(replace(tensor, rows=tuple(rows.tolist())))
        return replace(self, tensors=tuple(tensors))

    def summed(self, contributors: int) -> Sum:
        """The sum as headers have it."""
        return Sum("", self.narrow + self.scores, contributors)

    def encode(
        self,
        change: Named,
        share: float,
        scores: Sequence[float],
        contributors: int,
        before: Named = NOTHING,
        lot: int = 0,
    ) -> Words:
        """Words of one contribution, with room for the check slots.

        Parameters
        ----------
        change
            What training did to every parameter.
        share
            w / W of the member.
        scores
            Counts and losses of the received model.
        contributors
            Members that contribute.
        before
            What the change is counted from; default: it is a change already.
        lot
            By which numbers are rounded in a narrow ring.
        """
        if len(scores) != self.scores:
            raise ProtocolError(
                f"{len(scores)} scores came for a sum of {self.scores}; let all parties run one "
                "release."
            )
        words = np.zeros(self.narrow + self.scores + SLOTS, dtype="<u8")
        rooms = self.parts(words) if self.lanes == PAIRS else self._narrow_rooms()
        draw, most = np.random.Generator(np.random.Philox(lot)), self.lanes.most - contributors
        if self.tensors and most < self.lanes.most // 2:
            raise RunError(
                f"{contributors} organisations are too many for sums of {self.lanes.bits} bits: "
                "start a new run with a larger training-ring"
            )
        filled = []
        for tensor, room in rooms:
            old = _flat(tensor, before) if before else np.zeros(1)
            after, old = _flat(tensor, change), np.broadcast_to(old, room.shape)
            if tensor.rows:
                _cut(room, tensor, after, share, old, most, draw)
            else:
                _fill(room, tensor, after, share, old)
            filled.append(room)
        if self.lanes != PAIRS and filled:
            words[: self.narrow] = self.lanes.words(np.concatenate(filled))
        tail = words[self.narrow : -SLOTS].view("<f8")
        tail[:] = scores
        to_fixed(tail, SCORE_BITS, contributors)
        return words

    def mean(self, words: Words) -> dict[str, Floats]:
        """The mean change of every parameter, exactly as the sum has it."""
        return {
            tensor.name: np.multiply(
                tensor.by_row(part), 2.0 ** -tensor.fractions[:, None], dtype=np.float64
            ).reshape(tensor.shape)
            for tensor, part in self.parts(words)
        }

    def totals(self, words: Words) -> Floats:
        """The scores of all members together."""
        return from_fixed(words[self.narrow : -SLOTS].view(np.int64), SCORE_BITS)

    def require_small(self, words: Words, largest: float) -> None:
        """Refuse a mean whose Euclidean norm passes a limit, alike on every machine."""
        finest = max((int(tensor.fractions.max()) for tensor in self.tensors), default=0)
        squares = sum(
            sum_of_squares(row) << 2 * (finest - bits)
            for tensor, part in self.parts(words)
            for bits, row in _grouped(tensor, part)
        )
        if isqrt(squares) > int(largest * 2.0**finest):
            raise ProtocolError(
                f"The mean change of a round has a norm above the agreed {largest:g}; somebody may "
                "have forged it, or the learning rate is too large for the run: start again with "
                "a smaller one or a larger limit."
            )

    def parts(self, words: Words) -> Iterator[tuple[Tensor, NDArray[Any]]]:
        """Every tensor and its numbers in the words; in 32 bits they are the words themselves."""
        numbers = self.lanes.numbers(words[: self.narrow])
        ends = accumulate(tensor.size for tensor in self.tensors)
        for tensor, end in zip(self.tensors, ends, strict=True):
            yield tensor, numbers[end - tensor.size : end]

    def _narrow_rooms(self) -> Iterator[tuple[Tensor, NDArray[Any]]]:
        """Every tensor and room for its numbers, which go into words afterwards."""
        for tensor in self.tensors:
            yield tensor, np.empty(tensor.size, dtype=np.int32)


NO_PARAMETERS = SumShape((), 0)


def _grouped(tensor: Tensor, part: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Numbers of a tensor by their fraction bits."""
    if not tensor.rows:
        yield tensor.bits, part
        return
    for bits in np.unique(tensor.fractions).tolist():
        yield bits, tensor.by_row(part)[tensor.fractions == bits].reshape(-1)


def _largest(values: NDArray[Any]) -> float:
    return float(np.abs(values).max(initial=0.0))


def _cut(
    room: NDArray[np.int32],
    tensor: Tensor,
    after: NDArray[Any],
    share: float,
    before: NDArray[Any],
    most: int,
    draw: np.random.Generator,
) -> None:
    """Write a member's part of one tensor in scales by row, of what lies within them."""
    change = np.subtract(after, before, dtype=np.float64)
    if not np.isfinite(change).all():
        raise RunError(
            f"the change of {tensor.name!r} in one round is not finite: start a new run with a "
            "smaller learning rate"
        )
    cut = np.clip(tensor.by_row(change) * 2.0 ** tensor.fractions[:, None], -most, most)
    room[:] = np.floor(cut * share + draw.random(cut.shape)).reshape(-1)


def _flat(tensor: Tensor, arrays: Named) -> NDArray[Any]:
    """One tensor of some arrays as a row."""
    values = arrays.get(tensor.name)
    if values is None or values.shape != tensor.shape:
        raise ProtocolError(
            f"The change of {tensor.name!r} is missing or has not the agreed shape "
            f"{tensor.shape}; let all parties run one release."
        )
    return values.reshape(-1)


def _fill(
    room: NDArray[np.int32],
    tensor: Tensor,
    after: NDArray[Any],
    share: float,
    before: NDArray[Any],
) -> None:
    """Write a member's part of one tensor as whole numbers, by blocks that stay near the core."""
    block = np.empty(min(CHUNK, after.size))
    for start in range(0, after.size, CHUNK):
        part = slice(start, start + CHUNK)
        change = block[: after[part].size]
        np.subtract(after[part], before[part], out=change, dtype=np.float64)
        # Written so that a nan fails too. The value itself stays here: errors go to the server.
        if not (-tensor.limit < change.min() and change.max() < tensor.limit):
            raise RunError(
                f"the change of {tensor.name!r} in one round is not below {tensor.limit:g} "
                "everywhere, which is what its sum can hold: start a new run with a smaller "
                "learning rate or a coarser scale (training-bits)"
            )
        change *= share * 2.0**tensor.bits
        room[part] = np.rint(change, out=change)
