"""Noise on the sums of training, in the ring: a unit adds little, and everybody adds noise.

The unit is an organisation, whose update is clipped as a whole, or a node, the gradient of whose
example was clipped (`fedlap_app.models.examples`). A unit is taken in or left out, nothing else:
what it gives is replaced by zero.

The noise is never seeded: it comes from the operating system, so that two runs of the same settings
differ. Each contributor adds what its honest peers would need if `colluders` of the others told
each other theirs, so that the rest still have the whole deviation that was agreed.
"""

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import RunError
from fedlap_app.sums.training.shape import NOTHING, Named, SumShape, Tensor, Words

_LEAST = 16.0  # units of the ring: sums of coarser noise would not be what is accounted for
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Noise:
    """Clipping and noise of a training job, the same at all members; the unit is an organisation.

    Attributes
    ----------
    clip
        Norm that nothing of a single unit passes.
    multiplier
        Deviation of the noise of all who do not collude, over what a unit can change in the sum.
    colluders
        Members that may tell each other their noise.
    """

    clip: float
    multiplier: float
    colluders: int

    def share(self, weight: float, total: float, members: int) -> float:
        """What the own change counts by, of a weight among those of so many members.

        What others say of their weights must not raise what the own update can change.
        """
        del weight, total
        return 1.0 / members

    def bounded(
        self, after: Named, before: Named, tensors: Sequence[Tensor], share: float
    ) -> tuple[Named, Named]:
        """The change that leaves, and what it is counted from."""
        return self.clipped(after, before, tensors, share), NOTHING

    def reach(self, total: float, members: int, shape: SumShape) -> float:
        """Norm of what a unit can change in the mean."""
        del total, shape
        return self.clip / members

    def deviation(self, members: int, reach: float) -> float:
        """Deviation of what each of so many contributors adds to the mean."""
        honest = members - self.colluders
        if honest < 1:
            raise RunError(
                f"{members} members contribute and dp-colluders = {self.colluders} of them may "
                "collude: nobody would be left whose noise protects; set fewer colluders or let "
                "more organisations take part"
            )
        return self.multiplier * reach / math.sqrt(honest)

    def clipped(
        self, after: Named, before: Named, tensors: Sequence[Tensor], share: float
    ) -> Named:
        """The change, no longer than the clipping norm after it was cut to whole numbers."""
        change = {
            name: np.subtract(value, before.get(name, 0.0), dtype=np.float64)
            for name, value in after.items()
        }
        squares = sum(float(np.square(value, dtype=np.float64).sum()) for value in change.values())
        norm = math.sqrt(squares) if math.isfinite(squares) else math.inf
        # What cannot be measured cannot be clipped: nothing of it leaves.
        factor = 0.0 if math.isinf(norm) else min(1.0, self.clip / norm) if norm else 1.0
        bits = {tensor.name: tensor.bits for tensor in tensors}
        return {
            name: _cut(value, factor, share * 2.0 ** bits[name]) if factor else np.zeros_like(value)
            for name, value in change.items()
        }

    def add(self, words: Words, shape: SumShape, members: int, total: float = 0.0) -> None:
        """Add the own noise to the words of a contribution; `total` are all members' weights."""
        deviation = self.deviation(members, self.reach(total, members, shape))
        for tensor, room in shape.parts(words):
            units = deviation * 2.0**tensor.bits
            if units < _LEAST:
                raise RunError(
                    f"the noise of {tensor.name!r} is {units:.3g} units of the sum, where "
                    f"{_LEAST:g} are the least that is noise: raise training-bits, dp-noise or "
                    "dp-clip"
                )
            drawn = discrete_gaussian(units, room.size)
            np.add(room, drawn.astype(np.int32), out=room, casting="unsafe")


class NodeNoise(Noise):
    """The same with a node as the unit.

    A member weighs as many training nodes as it has, and its change is the sum of their clipped
    gradients over that number, so that each has the same part of the mean, whatever others say of
    their weights: more of them make the noise smaller and this part as well.
    """

    def share(self, weight: float, total: float, members: int) -> float:
        """The own training nodes among all."""
        del members
        return weight / total

    def bounded(
        self, after: Named, before: Named, tensors: Sequence[Tensor], share: float
    ) -> tuple[Named, Named]:
        """As they came: every example was clipped."""
        del tensors, share
        return after, before

    def reach(self, total: float, members: int, shape: SumShape) -> float:
        """One clipped gradient, and how far it can move what every number is rounded to."""
        del members
        rounded = math.sqrt(sum(each.size * 4.0**-each.bits for each in shape.tensors))
        return self.clip / total + rounded


def _cut(value: NDArray[Any], factor: float, unit: float) -> NDArray[np.float64]:
    """The scaled value, as a multiple of what one whole number stands for, never a larger one."""
    scaled = np.multiply(value, factor * unit, dtype=np.float64)
    return np.asarray(np.trunc(scaled, out=scaled) / unit)


def discrete_gaussian(deviation: float, count: int) -> Whole:
    """Whole numbers of a discrete Gaussian, from the operating system's randomness.

    Drawn from a discrete Laplace distribution and accepted with what is left to the Gaussian
    (Canonne, Kamath and Steinke, 2020, algorithm 3); probabilities are exact to 2^-53.
    """
    scale, found = math.floor(deviation) + 1, np.empty(count, dtype=np.int64)
    done = 0
    while done < count:
        size = 2 * (count - done) + 16
        raw = np.frombuffer(secrets.token_bytes(16 * size), dtype="<u8").reshape(2, size)
        uniform = ((raw >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
        size_of = np.floor(-scale * np.log(uniform[0]))
        negative = (raw[0] & np.uint64(1)).astype(bool)
        apart = size_of - deviation**2 / scale
        accepted = uniform[1] <= np.exp(-(apart**2) / (2 * deviation**2))
        accepted &= ~(negative & (size_of == 0))
        drawn = np.where(negative, -size_of, size_of)[accepted].astype(np.int64)[: count - done]
        found[done : done + drawn.size] = drawn
        done += drawn.size
    return found
