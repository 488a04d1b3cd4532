"""The server's side of one training sum: it adds as contributions arrive, and holds no key."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data
from fedlap_app.sums.accumulator import Accumulator, Line
from fedlap_app.sums.header import Header, Place, require_equal, require_same_sum
from fedlap_app.sums.lanes import PAIRS
from fedlap_app.sums.training.sealing import BACKEND, PROFILE, list_hash
from fedlap_app.sums.training.shape import SumShape


class _Ring(Accumulator):
    """A running sum whose first words hold several narrow numbers each."""

    word: ClassVar[str] = "<u8"
    narrow = 0
    lanes = PAIRS

    def _absorb(self, line: Line, sender: str, words: NDArray[np.uint64]) -> None:
        rest = line.total[self.narrow :]
        self.lanes.add(line.total[: self.narrow], words[: self.narrow])
        rest += words[self.narrow :]


class Adder:
    """The sum of one turn; its memory is that of one contribution.

    Parameters
    ----------
    job, job_members
        Id of the job and hash of all its members.
    place
        Where in the protocol the sum is.
    members
        Who contributes.
    shape
        What the sum holds.
    """

    def __init__(
        self, job: str, job_members: str, place: Place, members: tuple[str, ...], shape: SumShape
    ) -> None:
        self.members = tuple(sorted(members))
        self._shape = shape
        listed = list_hash(job_members, self.members)
        summed = (shape.summed(len(self.members)),)
        # Only members can make the id of their key; the first contribution says it.
        self._expected = Header(BACKEND, PROFILE, job, listed, "", *place, 0, summed)
        self._sum: _Ring | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """Members whose contribution has not come yet."""
        return self.members if self._sum is None else self._sum.missing("")

    def add(self, sender: str, data: Data) -> None:
        """Add what one member contributes; anything wrong is refused and changes nothing."""
        header, _ = Header.unpack(data)
        expected = self._expected._replace(key_id=header.key_id, sender=sender)
        if len(header.sums) == 1:
            require_same_sum(header.sums[0], expected.sums[0], expected.place)
        require_equal(header, expected)
        if sender not in self.members:
            raise ProtocolError(
                f"{sender!r} does not contribute to this sum; "
                f"expected are {', '.join(self.members)}."
            )
        adding = self._sum
        if adding is None:
            adding = _Ring(header, lambda _: self.members)
            adding.narrow, adding.lanes = self._shape.narrow, self._shape.lanes
        adding.add(data)
        self._sum = adding

    def result(self) -> bytes:
        """The sum, when all have contributed."""
        if self._sum is None:
            raise ProtocolError(
                f"Nobody contributed to the sum of {self._expected.place}; ask the members again."
            )
        return self._sum.result("")
