"""What the plan says of the phase before training, beside what it took."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean

from fedlap_app.reports.run_facts import RunFacts
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.shape import Part, Shape
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.sums.programs import Krylov


@dataclass(frozen=True)
class Planned:
    """Planned and measured.

    Attributes
    ----------
    up, measured_up
        Mean bytes that an organisation sends.
    down, measured_down
        Mean bytes that it receives.
    trips, measured_trips
        Round trips, the handshake included.
    """

    up: float
    measured_up: float
    down: float
    measured_down: float
    trips: int
    measured_trips: int


def plan_of(run: RunFacts) -> Planned | None:
    """The plan for the public sizes of a run; None when these are not known, or nothing ran."""
    slots: Mapping[str, int] = run.offline.get("slots", {})
    up, down = run.offline.get("up", {}), run.offline.get("down", {})
    hidden = run.settings.hide_topology
    if not slots or set(slots) != set(up) or run.offline.get("resumed") or not hidden:
        return None
    parts = tuple(_part(name, slots[name], tuple(slots)) for name in sorted(slots))
    phase = Phase(run.settings.spec_of(Krylov.name), Shape(parts), run.settings.seed)
    traffic = traffic_of(phase, run.settings.message_mb)
    return Planned(
        traffic.mean_up,
        mean(up.values()),
        traffic.mean_down,
        mean(down.values()),
        traffic.round_trips + traffic.handshake,
        run.offline.get("round_trips", 0) + run.offline.get("handshake", 0),
    )


def _part(name: str, slots: int, names: tuple[str, ...]) -> Part:
    """An organisation as large as its slots; with a hidden topology nothing else counts."""
    others = tuple(other for other in names if other != name)
    return Part(name, slots, slots, slots, slots, slots, others, 0)
