"""The server's side of one training sum: it adds as contributions arrive, and holds no key."""

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data
from fedlap_app.sums.accumulator import Accumulator
from fedlap_app.sums.header import Header, Place, require_equal, require_same_sum
from fedlap_app.sums.training.covers import MASK, cover_of
from fedlap_app.sums.training.sealing import PROFILE, list_hash
from fedlap_app.sums.training.shape import SumShape


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
    backend
        What hides it from the server.
    """

    def __init__(
        self,
        job: str,
        job_members: str,
        place: Place,
        members: tuple[str, ...],
        shape: SumShape,
        backend: str = MASK,
    ) -> None:
        self.members = tuple(sorted(members))
        self._shape, self._cover = shape, cover_of(backend)
        listed = list_hash(job_members, self.members)
        summed = (shape.summed(len(self.members)),)
        # Only members can make the id of their key; the first contribution says it.
        self._expected = Header(backend, PROFILE, job, listed, "", *place, 0, summed)
        self._sum: Accumulator | None = None

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
            adding = self._cover.accumulator(header, lambda _: self.members, self._shape)
        adding.add(data)
        self._sum = adding

    def result(self) -> bytes:
        """The sum, when all have contributed."""
        if self._sum is None:
            raise ProtocolError(
                f"Nobody contributed to the sum of {self._expected.place}; ask the members again."
            )
        return self._sum.result("")
