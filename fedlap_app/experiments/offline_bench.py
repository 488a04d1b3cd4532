"""What the offline phase costs, by solver and back end, against a bare numpy loop, in turns."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedlap_app.experiments.bare_loop import run_bare, run_textbook
from fedlap_app.experiments.bare_parts import Array, Blocks, Parts
from fedlap_app.experiments.spectrum import compare, run_spectrum
from fedlap_app.experiments.step_watch import StepWatch
from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.planning.exchanges import Phase
from fedlap_app.planning.plan import find_subgraphs
from fedlap_app.planning.shape import shape_of
from fedlap_app.planning.traffic import traffic_of
from fedlap_app.planning.values import values_of
from fedlap_app.settings import Settings

BARE = "bare"
TEXTBOOK = "textbook"
PLAIN, MASK = "plain", "mask"
LONGEST = 60.0
"""Seconds of a run above which it is stopped short and extrapolated."""

FEW_VECTORS = 20
PLAIN_LIMIT = 3.0
MASK_SHARE, MASK_NANOSECONDS = 1.2, 8.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Turn:
    """Seconds of one run: in all, after the handshake, with seals; and its report."""

    seconds: float
    iteration: float
    secure: float
    report: dict[str, Any]


def bench_offline(
    settings: Settings,
    solvers: Sequence[str],
    backends: Sequence[str],
    *,
    turns: int,
    check: bool = False,
    say: Say = lambda text: None,
) -> dict[str, Any]:
    """Measure every solver with every back end and the bare loop, one after the other in turns.

    Parameters
    ----------
    settings
        Data set and sizes.
    solvers, backends
        What to compare.
    turns
        Runs of each; medians are reported.
    check
        Compare the vectors with those of the whole graph.
    say
        Is told what is being measured.
    """
    settings, subgraphs = find_subgraphs(settings)
    rows: list[dict[str, Any]] = []
    bars: list[dict[str, Any]] = []
    for solver in solvers:
        chosen = replace(settings, solver=solver, resume=False, store_dir="")
        found = _bench_solver(chosen, subgraphs, backends, turns, check, say)
        rows += found
        bars += _bars(chosen, subgraphs, found)
    names = ("operator", "partition", "vectors", "block", "clients", "seed")
    return {
        "dataset": settings.data or settings.dataset,
        **{name: getattr(settings, name) for name in names},
        "rank": settings.offline_spec.kept,
        "turns": turns,
        "rows": rows,
        "bars": bars,
    }


def _bench_solver(
    settings: Settings,
    subgraphs: list[Subgraph],
    backends: Sequence[str],
    turns: int,
    check: bool,
    say: Say,
) -> list[dict[str, Any]]:
    """Rows of one solver: the bare loops, then the back ends."""
    short = _short(settings, backends[0], say)
    loops = {BARE: run_bare}
    if settings.solver == "block-lanczos":
        loops[TEXTBOOK] = run_textbook
    taken: dict[str, list[Turn]] = {name: [] for name in (*loops, *backends)}
    for turn in range(turns):
        say(f"{settings.solver}: turn {turn + 1} of {turns}")
        for name, loop in loops.items():
            taken[name].append(_bare_turn(settings, subgraphs, loop, check and not turn))
        for name in backends:
            chosen = replace(short or settings, backend=name)
            taken[name].append(_turn(chosen, check=check and not turn and short is None))
    rows = [_bare_row(settings, name, taken[name]) for name in loops]
    for name in backends:
        chosen = replace(settings, backend=name)
        rows.append(_row(chosen, subgraphs, taken[name], short))
    return rows


def _short(settings: Settings, backend: str, say: Say) -> Settings | None:
    """Settings of a few steps, when all would take too long."""
    few = replace(settings, backend=backend, vectors=FEW_VECTORS, rank=0)
    if settings.vectors <= 2 * FEW_VECTORS or settings.offline_spec.rounds() < 1000:
        return None
    say(f"{settings.solver}: a few steps, to see how long it takes")
    a_round = _turn(few).iteration / few.offline_spec.rounds()
    return few if a_round * settings.offline_spec.rounds() > LONGEST else None


def _turn(settings: Settings, *, check: bool = False) -> Turn:
    watch = StepWatch()
    report = run_spectrum(settings, check=check, dump=None, progress=watch)
    return Turn(report["seconds"], watch.iteration, report["seconds_secure"], report)


def _bare_turn(
    settings: Settings,
    subgraphs: list[Subgraph],
    loop: Callable[[Parts], tuple[Array, Blocks]],
    check: bool,
) -> Turn:
    parts = Parts(subgraphs, settings.offline_spec, settings.seed)
    started = time.perf_counter()
    try:
        _, rows = loop(parts)
    except np.linalg.LinAlgError:
        return Turn(np.nan, np.nan, 0.0, {})
    seconds = time.perf_counter() - started
    report: dict[str, Any] = {}
    if check:
        named = {part.name: each for part, each in zip(subgraphs, rows, strict=True)}
        report = dict(compare(settings, subgraphs, named))
    return Turn(seconds, seconds, 0.0, report)


def _bare_row(settings: Settings, name: str, turns: list[Turn]) -> dict[str, Any]:
    return {
        "solver": settings.solver,
        "backend": name,
        "extrapolated": False,
        "round_trips": 0,
        "bytes_up_per_client": 0,
        "bytes_down_per_client": 0,
        "values_per_client": 0,
        "bytes_per_value_up": None,
        **_medians(turns),
        **_quality(turns),
    }


def _row(
    settings: Settings, subgraphs: list[Subgraph], turns: list[Turn], short: Settings | None
) -> dict[str, Any]:
    """One solver and back end; the bytes of a run that was stopped short are predicted."""
    keys = (
        "round_trips", "bytes_up_per_client", "bytes_down_per_client", "values_per_client",
        "bytes_per_value_up",
    )  # fmt: skip
    facts = {key: turns[0].report[key] for key in keys}
    seconds = _medians(turns)
    if short is not None:
        phase = Phase(settings.offline_spec, shape_of(subgraphs), settings.seed)
        traffic = traffic_of(phase, settings.message_mb)
        wanted = statistics.mean(each.wanted for each in values_of(phase).values())
        counted = (traffic.round_trips, traffic.mean_up, traffic.mean_down, wanted)
        facts = dict(zip(keys, (*counted, traffic.mean_up / wanted), strict=True))
        share = traffic.round_trips / turns[0].report["round_trips"]
        handshake = seconds["seconds"] - seconds["seconds_iteration"]
        seconds = {key: share * value for key, value in seconds.items()}
        seconds["seconds"] = handshake + seconds["seconds_iteration"]
    return {
        "solver": settings.solver,
        "backend": settings.backend,
        "extrapolated": short is not None,
        **facts,
        **seconds,
        **(_quality(turns) if short is None else dict.fromkeys(("orthogonality", "capture"))),
    }


def _medians(turns: list[Turn]) -> dict[str, float]:
    return {
        "seconds": statistics.median(turn.seconds for turn in turns),
        "seconds_iteration": statistics.median(turn.iteration for turn in turns),
        "seconds_secure": statistics.median(turn.secure for turn in turns),
    }


def _quality(turns: list[Turn]) -> dict[str, Any]:
    return {key: turns[0].report.get(key) for key in ("orthogonality", "capture")}


def _bars(
    settings: Settings, subgraphs: list[Subgraph], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Ratios of one solver, each with the limit that it should stay below."""
    seconds = {row["backend"]: row["seconds"] for row in rows}
    after = {row["backend"]: row["seconds_iteration"] for row in rows}
    found: list[dict[str, Any]] = []
    if PLAIN in seconds:
        pairs = [(f"plain / {loop}", loop) for loop in (BARE, TEXTBOOK) if loop in seconds]
        for what, loop in pairs:
            limit = PLAIN_LIMIT if loop == BARE else None
            found.append(_bar(settings, what, seconds[PLAIN] / seconds[loop], limit))
            found.append(
                _bar(settings, f"{what}, after the handshake", after[PLAIN] / seconds[loop], limit)
            )
    if {PLAIN, MASK} <= set(seconds):
        phase = Phase(replace(settings, backend=MASK).offline_spec, shape_of(subgraphs))
        padded = sum(each.padded for each in values_of(phase).values())
        over = 1e9 * (seconds[MASK] - MASK_SHARE * seconds[PLAIN]) / padded
        added = 1e9 * (seconds[MASK] - seconds[PLAIN]) / padded
        found.append(_bar(settings, "ns a value and pad: mask - 1.2 plain", over, MASK_NANOSECONDS))
        found.append(_bar(settings, "ns a value and pad: mask - plain", added, None))
    return found


def _bar(settings: Settings, what: str, value: float, limit: float | None) -> dict[str, Any]:
    met = None if limit is None else bool(value <= limit)
    return {"solver": settings.solver, "what": what, "value": value, "limit": limit, "met": met}
