"""The server's side of one step: one running sum for each recipient, added as replies arrive."""

from collections.abc import Callable

from fedlap_app.errors import ProtocolError
from fedlap_app.methods.offline.messages import Data
from fedlap_app.secure.accumulator import Accumulator
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
        self._sums: Accumulator | None = None

    def add(self, sender: str, data: Data) -> None:
        """Add all that one member contributes; anything wrong is refused."""
        self._sums = self._sums or self._begin(data)
        if self._sums.add(data) != sender:
            raise ProtocolError(
                f"{sender!r} sent a contribution in the name of another member; "
                "it was misrouted or altered, start a new job."
            )

    def _begin(self, data: Data) -> Accumulator:
        """New sums; the first contributions must belong to this step."""
        header, _ = Header.unpack(data)
        for name, value in self._expected.items():
            if getattr(header, name) != value:
                raise ProtocolError(
                    f"A contribution says {name} = {getattr(header, name)!r} where {value!r} was "
                    "expected; it is stale, misrouted or altered."
                )
        return make_accumulator(header, self._senders)

    def small(self) -> bytes:
        """The sum for everyone."""
        if self._sums is None or not (total := self._sums.result("")):
            raise ProtocolError("Nobody contributed to the small sum; start a new job.")
        return total

    def block(self, recipient: str) -> bytes:
        """The sum for one member; empty when this step has none."""
        return self._sums.result(recipient) if self._sums is not None else b""
