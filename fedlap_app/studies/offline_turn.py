"""One timed run of the offline phase, or of a bare loop in its place."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedlap_app.api.phase import Phase
from fedlap_app.api.workplace import temporary_home
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings
from fedlap_app.studies.bare_parts import Array, Blocks, Parts
from fedlap_app.studies.step_watch import Instant, StepWatch

Loop = Callable[[Parts], tuple[Array, Blocks]]
_NEVER = Instant(float("nan"), float("nan"))


@dataclass(frozen=True)
class Turn:
    """What one run took.

    Attributes
    ----------
    whole, iteration
        In all, and after the handshake.
    clients
        Seconds of all clients in handlers; the rest is the server's, messages included.
    sealing, opening
        Of these with sealing and with opening.
    adding
        Seconds of the server with adding.
    """

    whole: Instant
    iteration: Instant
    clients: float = 0.0
    sealing: float = 0.0
    opening: float = 0.0
    adding: float = 0.0


def phase_turn(settings: Settings) -> Turn:
    """Run the phase on the in-process grid, in stores that are deleted afterwards."""
    with temporary_home():
        phase = Phase(replace(settings, store_dir=""))
        watch = StepWatch()
        price = phase.run(watch).price
    sums = (price.sealing_seconds, price.opening_seconds, price.adding_seconds)
    return Turn(watch.whole, watch.iteration, price.client_seconds, *sums)


def loop_turn(
    settings: Settings, subgraphs: Sequence[Subgraph], loop: Loop
) -> tuple[Turn, Blocks | None]:
    """Run a bare loop; gives its rows too, or none when it broke down."""
    parts = Parts(subgraphs, settings.offline_spec, settings.seed)
    started = Instant.now()
    try:
        _, rows = loop(parts)
    except np.linalg.LinAlgError:
        return Turn(_NEVER, _NEVER), None
    taken = Instant.now().since(started)
    return Turn(taken, taken), rows


def medians(turns: Sequence[Turn]) -> dict[str, float]:
    """Median seconds of some turns."""
    found = {
        "seconds": [turn.whole.wall for turn in turns],
        "seconds_clients": [turn.clients for turn in turns],
        "seconds_server": [turn.whole.wall - turn.clients for turn in turns],
        "seconds_sealing": [turn.sealing for turn in turns],
        "seconds_opening": [turn.opening for turn in turns],
        "seconds_adding": [turn.adding for turn in turns],
        "cpu_seconds": [turn.whole.cpu for turn in turns],
        "cpu_seconds_iteration": [turn.iteration.cpu for turn in turns],
    }
    return {key: statistics.median(values) for key, values in found.items()}
