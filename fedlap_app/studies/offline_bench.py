"""What the offline phase costs, by solver and back end, against a bare numpy loop, in turns."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from fedlap_app.graphs.subgraph import Subgraph
from fedlap_app.settings import Settings
from fedlap_app.studies.bare_loop import run_bare, run_textbook
from fedlap_app.studies.bare_parts import Blocks
from fedlap_app.studies.offline_bars import BARE, TEXTBOOK, bars_of, bars_of_paper
from fedlap_app.studies.offline_turn import Loop, Turn, loop_turn, medians, phase_turn
from fedlap_app.studies.paper_default import paper_row
from fedlap_app.studies.planning.columns import CKKS, MASK, with_sums
from fedlap_app.studies.planning.exchanges import Phase
from fedlap_app.studies.planning.plan import find_subgraphs
from fedlap_app.studies.planning.shape import shape_of
from fedlap_app.studies.planning.traffic import traffic_of
from fedlap_app.studies.planning.values import values_of
from fedlap_app.studies.spectrum import compare, run_spectrum
from fedlap_app.sums.ckks.tenseal_parameters import TENSEAL_DEFAULT

LONGEST = 60.0
"""Seconds of a run above which only a few steps are run, and the rest is extrapolated."""

FEW_VECTORS = 20
MANY_ROUNDS = 1000
FEW_SLOW_VECTORS = 4
MANY_SLOW_CIPHERTEXTS = 2000
_COUNTED = (
    "round_trips", "bytes_up_per_client", "bytes_down_per_client", "values_per_client",
    "bytes_per_value_up",
)  # fmt: skip
_QUALITY = ("orthogonality", "capture")

Say = Callable[[str], None]
Row = dict[str, Any]


def bench_offline(
    settings: Settings,
    solvers: Sequence[str],
    backends: Sequence[str],
    *,
    turns: int,
    check: bool = False,
    paper: bool = False,
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
        Timed runs of each, after one that is not timed; medians are reported.
    check
        Compare the vectors with those of the whole graph.
    paper
        Add the paper's algorithm with default TenSEAL parameters, a few steps of it.
    say
        Is told what is being measured.
    """
    settings, subgraphs = find_subgraphs(settings)
    rows: list[Row] = []
    bars: list[Row] = []
    for solver in solvers:
        bench = _Bench(replace(settings, solver=solver, resume=False, store_dir=""), subgraphs)
        found = bench.rows(backends, turns, check, say)
        rows += found
        bars += bars_of({each: bench.phase(each) for each in (MASK, CKKS)}, found)
    if paper:
        say("arnoldi: a few steps with default TenSEAL parameters")
        rows.append({**dict.fromkeys(rows[-1]), **paper_row(settings, subgraphs)})
        bars += bars_of_paper(rows)
    names = ("operator", "partition", "vectors", "block", "clients", "seed")
    return {
        "dataset": settings.data or settings.dataset,
        **{name: getattr(settings, name) for name in names},
        "rank": settings.kept,
        "turns": turns,
        "rows": rows,
        "bars": bars,
    }


class _Bench:
    """Measurements of one solver."""

    def __init__(self, settings: Settings, subgraphs: list[Subgraph]) -> None:
        self.settings = settings
        self.subgraphs = subgraphs
        self.loops: dict[str, Loop] = {BARE: run_bare}
        if settings.solver == "block-lanczos":
            self.loops[TEXTBOOK] = run_textbook

    def phase(self, backend: str) -> Phase:
        """The phase as sizes."""
        spec = with_sums(self.settings, backend).offline_spec
        return Phase(spec, shape_of(self.subgraphs), self.settings.seed)

    def rows(self, backends: Sequence[str], turns: int, check: bool, say: Say) -> list[Row]:
        """Rows of the bare loops and of the back ends."""
        name = self.settings.solver
        say(f"{name}: a run that is not timed")
        shared = self._short(backends[0])
        short = {each: self._short_slow(each) or shared for each in backends}
        facts = {each: self._facts(each, short[each], check) for each in backends}
        taken: dict[str, list[Turn]] = {each: [] for each in (*self.loops, *backends)}
        rows: dict[str, Blocks | None] = {}
        for turn in range(turns):
            say(f"{name}: turn {turn + 1} of {turns}")
            for each, loop in self.loops.items():
                measured, rows[each] = loop_turn(self.settings, self.subgraphs, loop)
                taken[each].append(measured)
            for each in backends:
                taken[each].append(phase_turn(with_sums(short[each] or self.settings, each)))
        quality = {each: self._checked(rows[each], check) for each in self.loops}
        bare = [self._row(each, taken[each], quality[each]) for each in self.loops]
        return bare + [self._row(each, taken[each], facts[each], short[each]) for each in backends]

    def _profile(self, backend: str) -> str | None:
        """Parameters of the sums, if there are any."""
        return None if backend in self.loops else self.phase(backend).spec.profile

    def _short(self, backend: str) -> Settings | None:
        """Settings of a few steps, when all of them would take too long."""
        settings = with_sums(self.settings, backend)
        rounds = settings.offline_spec.rounds()
        if settings.vectors <= 2 * FEW_VECTORS or rounds < MANY_ROUNDS:
            return None
        few = replace(settings, vectors=FEW_VECTORS, rank=0)
        a_round = phase_turn(few).iteration.wall / few.offline_spec.rounds()
        return few if a_round * rounds > LONGEST else None

    def _short_slow(self, backend: str) -> Settings | None:
        """Settings of very few steps for ciphertexts that are an order of magnitude slower."""
        few = FEW_SLOW_VECTORS
        if backend != TENSEAL_DEFAULT.name or self.settings.vectors <= 2 * few:
            return None
        if self._ciphertexts(self.settings) < MANY_SLOW_CIPHERTEXTS:
            return None
        return replace(self.settings, vectors=few, rank=0, block=min(self.settings.block, few))

    def _ciphertexts(self, settings: Settings) -> int:
        """Ciphertexts of all members with the profile tenseal-default."""
        spec = with_sums(settings, TENSEAL_DEFAULT.name).offline_spec
        phase = Phase(spec, shape_of(self.subgraphs), settings.seed)
        return sum(each.ciphertexts for each in values_of(phase).values())

    def _facts(self, backend: str, short: Settings | None, check: bool) -> Row:
        """What a run counts; of one that is cut short it is predicted."""
        if short is None:
            settings = with_sums(self.settings, backend)
            report = run_spectrum(settings, check=check, dump=None)
            return {key: report[key] for key in (*_COUNTED, *_QUALITY)}
        phase = self.phase(backend)
        traffic = traffic_of(phase, self.settings.message_mb)
        wanted = statistics.mean(each.wanted for each in values_of(phase).values())
        counted = (traffic.round_trips, traffic.mean_up, traffic.mean_down, wanted)
        return dict(zip(_COUNTED, (*counted, traffic.mean_up / wanted), strict=True))

    def _checked(self, rows: Blocks | None, check: bool) -> Row:
        """Quality of a bare loop's vectors."""
        if rows is None or not check:
            return {}
        named = {part.name: each for part, each in zip(self.subgraphs, rows, strict=True)}
        found = compare(self.settings, self.subgraphs, named)
        return {key: found[key] for key in _QUALITY}

    def _share(self, backend: str, short: Settings) -> float:
        """How many times more the whole run has to do than a short one."""
        if backend == TENSEAL_DEFAULT.name:
            return self._ciphertexts(self.settings) / self._ciphertexts(short)
        return self.settings.offline_spec.rounds() / short.offline_spec.rounds()

    def _row(
        self, backend: str, turns: list[Turn], facts: Row, short: Settings | None = None
    ) -> Row:
        seconds = medians(turns)
        if short is not None:
            share = self._share(backend, short)
            handshake = seconds["cpu_seconds"] - seconds["cpu_seconds_iteration"]
            seconds = {key: share * value for key, value in seconds.items()}
            seconds["cpu_seconds"] = handshake + seconds["cpu_seconds_iteration"]
        return {
            "solver": self.settings.solver,
            "backend": backend,
            "profile": self._profile(backend),
            "extrapolated": short is not None,
            **dict.fromkeys((*_COUNTED, *_QUALITY)),
            **facts,
            **seconds,
        }
