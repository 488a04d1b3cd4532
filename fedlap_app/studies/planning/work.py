"""Seconds of an offline phase: counts of operations times what one takes on this machine."""

from dataclasses import dataclass

from fedlap_app.studies.planning.calibration import Rates
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import Part
from fedlap_app.studies.planning.traffic import Traffic
from fedlap_app.studies.planning.values import Values


@dataclass(frozen=True)
class Work:
    """Seconds of computing, messages included.

    Attributes
    ----------
    members
        Of each member, all steps together.
    server
        Of the server.
    """

    members: dict[str, float]
    server: float

    @property
    def one_after_the_other(self) -> float:
        """All parties on one core."""
        return sum(self.members.values()) + self.server

    @property
    def side_by_side(self) -> float:
        """Every party on a machine like this one."""
        return max(self.members.values()) + self.server


def work_of(phase: Phase, traffic: Traffic, values: dict[str, Values], rates: Rates) -> Work:
    """Seconds of every party."""
    trips = traffic.round_trips
    peers = len(phase.shape.parts) - 1
    members = {}
    for part in phase.shape.parts:
        count = values[part.name]
        members[part.name] = (
            rates.member
            + rates.peer * peers
            + rates.edge * part.shared
            + rates.message * trips
            + rates.contribution * count.contributions
            + rates.seal * count.sealed
            + rates.open * count.opened
            + rates.byte * (traffic.up[part.name] + traffic.down[part.name])
            + rates.sparse * _sparse(phase, part)
            + rates.dense * phase.footprint(part).multiplications
        )
    sealed = sum(count.sealed for count in values.values())
    server = rates.add * sealed + rates.byte * sum(traffic.down.values())
    return Work(members, server)


def _sparse(phase: Phase, part: Part) -> int:
    """Entries times columns of all products; loops and the diagonal count as entries."""
    return sum(this.width for this in phase.rounds) * (part.entries + part.nodes)
