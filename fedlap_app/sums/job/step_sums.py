"""The server's side of one step: one running sum for each recipient, added as replies arrive."""

from collections.abc import Callable
from dataclasses import dataclass

from fedlap_app.errors import ProtocolError
from fedlap_app.store.packing import Data
from fedlap_app.sums.accumulator import Accumulator
from fedlap_app.sums.choice import make_accumulator, names_of
from fedlap_app.sums.header import Header

Senders = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True)
class Agreed:
    """What all contributions of a step must say, by the settings and by the job.

    Attributes
    ----------
    backend, profile
        How numbers are sealed, and so what the server parses; an empty back end is not agreed.
    job, members
        Job id and hash of the members.
    phase, step
        Name of the program, and number of the step.
    """

    backend: str
    profile: str
    job: str
    members: str
    phase: str
    step: int

    def require(self, header: Header) -> None:
        """Refuse a header that says anything else."""
        backend, profile = header.backend, header.profile
        if self.backend:
            backend, profile = names_of(self.backend, self.profile)
        for name, value in (
            ("backend", backend),
            ("profile", profile),
            ("job", self.job),
            ("members", self.members),
            ("phase", self.phase),
            ("step", self.step),
            ("attempt", 0),
        ):
            if getattr(header, name) != value:
                raise ProtocolError(
                    f"A contribution says {name} = {getattr(header, name)!r} where {value!r} was "
                    "expected; it is stale, misrouted or altered."
                )


class StepSums:
    """Sums of one step; holds no key and no single contribution.

    Parameters
    ----------
    agreed
        What every contribution must belong to.
    senders
        Who contributes to the sum of a recipient; an empty recipient means everyone's sum.
    """

    def __init__(self, agreed: Agreed, senders: Senders) -> None:
        self._agreed = agreed
        self._senders = senders
        self._sums: Accumulator | None = None
        self.lengths: dict[str, int] = {}
        """Numbers of each member's sum, which the server sees as their length."""

    def add(self, sender: str, data: Data) -> None:
        """Add all that one member contributes; anything wrong is refused."""
        header, _ = Header.unpack(data)
        # Before anything is made for it or parses it.
        self._agreed.require(header)
        self._sums = self._sums or make_accumulator(header, self._senders)
        self.lengths |= {each.recipient: each.length for each in header.sums if each.recipient}
        if self._sums.add(data) != sender:
            raise ProtocolError(
                f"{sender!r} sent a contribution in the name of another member; "
                "it was misrouted or altered, start a new job."
            )

    def small(self) -> bytes:
        """The sum for everyone."""
        if self._sums is None or not (total := self._sums.result("")):
            raise ProtocolError("Nobody contributed to the small sum; start a new job.")
        return total

    def block(self, recipient: str) -> bytes:
        """The sum for one member; empty when this step has none."""
        return self._sums.result(recipient) if self._sums is not None else b""
