"""The server's side of one step: one running sum for each recipient, added as replies arrive."""

from collections.abc import Callable, Mapping

from fedlap_app.errors import ProtocolError
from fedlap_app.methods.offline.messages import Data
from fedlap_app.secure.backend import Accumulator
from fedlap_app.secure.choice import make_accumulator
from fedlap_app.secure.header import Header

Senders = Callable[[str], tuple[str, ...]]


class StepSums:
    """Sums of one step; holds no key and no single contribution.

    Parameters
    ----------
    job, members, step
        What every contribution must belong to.
    senders
        Who contributes to the sum of a recipient; an empty recipient means everyone's sum.
    """

    def __init__(self, job: str, members: str, step: int, senders: Senders) -> None:
        self._expected = {"job": job, "members": members, "step": step}
        self._senders = senders
        self._sums: dict[str, Accumulator] = {}

    def add(self, sender: str, contributions: Mapping[str, Data]) -> None:
        """Add all contributions of one member, by recipient; a wrong one is refused."""
        for recipient, data in contributions.items():
            total = self._sums.get(recipient) or self._begin(recipient, data)
            if total.add(data) != sender:
                raise ProtocolError(
                    f"{sender!r} sent a contribution in the name of another member; "
                    "it was misrouted or altered, start a new job."
                )

    def _begin(self, recipient: str, data: Data) -> Accumulator:
        """A new sum; its first contribution must belong to this step."""
        header = Header.unpack(data)[0].of("")
        for name, value in {**self._expected, "recipient": recipient}.items():
            if getattr(header, name) != value:
                raise ProtocolError(
                    f"A contribution says {name} = {getattr(header, name)!r} where {value!r} was "
                    "expected; it is stale, misrouted or altered."
                )
        self._sums[recipient] = make_accumulator(header, self._senders(recipient))
        return self._sums[recipient]

    def small(self) -> bytes:
        """The sum for everyone."""
        if "" not in self._sums:
            raise ProtocolError("Nobody contributed to the small sum; start a new job.")
        return self._sums[""].result()

    def block(self, recipient: str) -> bytes:
        """The sum for one member; empty when this step has none."""
        return self._sums[recipient].result() if recipient in self._sums else b""
