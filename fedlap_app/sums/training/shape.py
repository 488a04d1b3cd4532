"""What one sum of a round holds: parameters in 32 bits, then scores in 64 bits.

A member puts (w / W) times the change of every parameter into the sum, where w is its weight and W
that of all, so the sum is the weighted mean itself: what 32 bits hold does not depend on how many
members there are. Every tensor has a scale of its own, a power of two that all have agreed on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from fedlap_app.sums.pads import CHUNK

SCORE_BITS = 20  # counts up to 2^40 / K exactly, losses to 1e-6
MOST_CONTRIBUTORS = 1 << 12
_WORD = 1 << 31

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
    """

    name: str
    shape: tuple[int, ...]
    bits: int = 24

    @property
    def size(self) -> int:
        """Numbers in it."""
        return prod(self.shape)

    @property
    def limit(self) -> float:
        """What no number of its change may reach; every contributor rounds once."""
        return float((_WORD - MOST_CONTRIBUTORS) * 2.0**-self.bits)


@dataclass(frozen=True)
class SumShape:
    """Shape of the sum of one round.

    Attributes
    ----------
    tensors
        The parameters, in their order.
    scores
        How many counts and losses follow.
    """

    tensors: tuple[Tensor, ...]
    scores: int

    @cached_property
    def narrow(self) -> int:
        """Words of 64 bits that hold two parameters each."""
        return -(-sum(tensor.size for tensor in self.tensors) // 2)

    @cached_property
    def digest(self) -> bytes:
        """Hash of names, shapes and scales."""
        parts = (encode(each.name, each.bits, *each.shape) for each in self.tensors)
        return digest("training sum", self.scores, *parts)

    @cached_property
    def without_parameters(self) -> "SumShape":
        """The same scores of a model that is not trained any more."""
        return SumShape((), self.scores)

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
        """
        if len(scores) != self.scores:
            raise ProtocolError(
                f"{len(scores)} scores came for a sum of {self.scores}; let all parties run one "
                "release."
            )
        words = np.zeros(self.narrow + self.scores + SLOTS, dtype="<u8")
        for tensor, room in self.parts(words):
            old = _flat(tensor, before) if before else np.zeros(1)
            _fill(room, tensor, _flat(tensor, change), share, np.broadcast_to(old, room.shape))
        tail = words[self.narrow : -SLOTS].view("<f8")
        tail[:] = scores
        to_fixed(tail, SCORE_BITS, contributors)
        return words

    def mean(self, words: Words) -> dict[str, Floats]:
        """The mean change of every parameter, exactly as the sum has it."""
        return {
            tensor.name: np.multiply(part, 2.0**-tensor.bits, dtype=np.float64).reshape(
                tensor.shape
            )
            for tensor, part in self.parts(words)
        }

    def totals(self, words: Words) -> Floats:
        """The scores of all members together."""
        return from_fixed(words[self.narrow : -SLOTS].view(np.int64), SCORE_BITS)

    def require_small(self, words: Words, largest: float) -> None:
        """Refuse a mean whose Euclidean norm passes a limit, alike on every machine."""
        finest = max((tensor.bits for tensor in self.tensors), default=0)
        squares = sum(
            sum_of_squares(part) << 2 * (finest - tensor.bits) for tensor, part in self.parts(words)
        )
        if isqrt(squares) > int(largest * 2.0**finest):
            raise ProtocolError(
                f"The mean change of a round has a norm above the agreed {largest:g}; somebody may "
                "have forged it, or the learning rate is too large for the run: start again with "
                "a smaller one or a larger limit."
            )

    def parts(self, words: Words) -> Iterator[tuple[Tensor, NDArray[np.int32]]]:
        """Every tensor and its place in the words."""
        pairs = words[: self.narrow].view("<i4")
        ends = accumulate(tensor.size for tensor in self.tensors)
        for tensor, end in zip(self.tensors, ends, strict=True):
            yield tensor, pairs[end - tensor.size : end]


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
