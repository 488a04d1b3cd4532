"""One timed run of the offline phase, or of a bare loop in its place."""

import shutil
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedlap_app import places
from fedlap_app.experiments.bare_parts import Array, Blocks, Parts
from fedlap_app.experiments.step_watch import Instant, StepWatch
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings

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
    from server_app.federation import gather
    from server_app.in_process import make_grid
    from server_app.member_grid import MemberGrid
    from server_app.offline import run_offline

    places.home().mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=places.home()))
    try:
        settings = replace(settings, store_dir=str(folder), resume=False)
        grid = MemberGrid(make_grid(settings))
        members = gather(grid, settings)
        watch = StepWatch()
        outcome = run_offline(grid, members, settings, watch)
        price = outcome.price
        sums = (price.sealing_seconds, price.opening_seconds, price.adding_seconds)
        return Turn(watch.whole, watch.iteration, price.client_seconds, *sums)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
