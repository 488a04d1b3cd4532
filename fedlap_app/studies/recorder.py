"""Records what the clients and the server of a run in this process see, for attacks on it.

Only experiments use it: it reads the memory of all parties, which one process has and a deployment
does not.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fedlap_app.api.phase import Phase
from fedlap_app.api.workplace import temporary_home
from fedlap_app.errors import ConfigError, RunError
from fedlap_app.settings import Settings
from fedlap_app.spectral.operators.base import SplitOperator
from fedlap_app.spectral.solvers import Solver
from fedlap_app.spectral.totals import Totals
from fedlap_app.studies.attacks.server import Exchange
from fedlap_app.studies.attacks.views import ClientView
from fedlap_app.sums.job import live
from fedlap_app.sums.job.iteration import Iteration
from fedlap_app.sums.programs.krylov_half import KrylovHalf

if TYPE_CHECKING:
    from flwr.app import RecordDict

    from fedlap_app.flower.server.parts import Parts

Array = NDArray[np.float64]


@dataclass
class Recording:
    """What the parties of one run saw."""

    exchanges: list[Exchange] = field(default_factory=list)
    iterations: dict[str, Iteration] = field(default_factory=dict)

    def views(self) -> dict[str, ClientView]:
        """What each client holds at the end of the phase, by name."""
        parts = dict(sorted(self.iterations.items()))
        spikes = [_spikes(each) for each in parts.values()]
        return {name: _view(each, sum(spikes[1:], spikes[0])) for name, each in parts.items()}


def record_run(settings: Settings, parts: "Parts" = ()) -> Recording:
    """Run the offline phase in this process, on stores that are deleted, and record it.

    Parameters
    ----------
    settings
        Settings of the phase.
    parts
        What the organisations hold (default: what the settings name).
    """
    if settings.operator == "directed":
        raise ConfigError(
            "operator = 'directed' is not covered by the attacks, which follow the paper: try "
            "--operator sym"
        )
    recording = Recording()

    def hear(node: int, kind: str, sent: "RecordDict", answered: "RecordDict") -> None:
        recording.exchanges.append(_exchange(node, kind, sent, answered))

    def note(kept: live.Live) -> None:
        if isinstance(kept.work, Iteration) and kept.work.half.done:
            recording.iterations[kept.work.me] = kept.work

    with temporary_home(), live.told(note):
        phase = Phase(replace(settings, store_dir=""), parts, hear)
        phase.run(lambda number, rounds: None)
    if len(recording.iterations) != phase.settings.clients:
        raise RunError(
            f"{len(recording.iterations)} of {phase.settings.clients} organisations were recorded: "
            "run it again"
        )
    return recording


def _exchange(node: int, kind: str, sent: "RecordDict", answered: "RecordDict") -> Exchange:
    taken = answered["reply"].get("seconds") if "reply" in answered else None
    seconds = float(taken[0]) if isinstance(taken, list) else 0.0
    return Exchange(node, kind, _bytes(sent), _bytes(answered), seconds)


def _bytes(content: "RecordDict") -> bytes:
    """All values of a message one after the other."""
    values: list[bytes] = []
    for record in content.values():
        for key, value in sorted(record.items()):
            if key != "seconds":
                values.append(value if isinstance(value, bytes) else repr(value).encode())
    return b"".join(values)


def _solver(iteration: Iteration) -> Solver:
    return _half(iteration).running


def _half(iteration: Iteration) -> KrylovHalf:
    if not isinstance(iteration.half, KrylovHalf):
        raise RunError("only runs that compute a basis are recorded: try method = 'fedlap+'")
    return iteration.half


def _operator(solver: Solver) -> SplitOperator:
    if not isinstance(solver.operator, SplitOperator):
        raise RunError(f"the solver {solver.name} works on another operator than was recorded")
    return solver.operator


def _spikes(iteration: Iteration) -> Array:
    """Own share of the sums that a term ``- v v'`` of the operator needs."""
    solver = _solver(iteration)
    spike = _operator(solver).spike
    return np.zeros(solver.columns) if spike is None else spike @ solver.Q


def _view(iteration: Iteration, spikes: Array) -> ClientView:
    half = _half(iteration)
    solver, program = half.running, half.program
    totals = Totals.from_sums(half.totals)
    return ClientView(
        subgraph=half.site.subgraph,
        kind=program.operator,
        loops=program.loops,
        shift=totals.mean_degree if program.shift is None else program.shift,
        operator=_operator(solver),
        totals=totals,
        Q=np.array(solver.Q),
        Z=np.array(solver.Z) if solver.keeps_images else np.zeros((solver.operator.nodes, 0)),
        H=np.array(solver.problem().ritz),
        spikes=spikes,
    )


def basis_rows(settings: Settings) -> dict[str, Array]:
    """Scaled rows of all vectors exchanged, by organisation, from an unprotected run here."""
    plain = replace(settings, backend="plain", profile="auto", insecure_no_pads=False)
    return {name: view.scaled for name, view in record_run(plain).views().items()}
